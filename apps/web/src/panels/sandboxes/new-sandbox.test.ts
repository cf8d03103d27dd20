import { expect, test } from 'bun:test'
import { cloneCommand, isRepositoryAddress, networksFor, planSandbox } from './new-sandbox.ts'

const form = {
  name: '',
  policy: 'allowlist',
  hosts: 'github.com',
  repository: 'https://github.com/a/b',
} as const

test('offers only an open network where sandboxes are not isolated', () => {
  expect(networksFor([])[0]).toBe('none')
  expect(networksFor([{ isolation: 'bubblewrap' }, { isolation: null }])).toHaveLength(3)
  expect(networksFor([{ isolation: 'none' }])).toEqual(['open'])
})

test('clones a repository first', () => {
  expect(planSandbox(form)).toMatchObject({
    kind: 'good',
    sandbox: { network: { policy: 'allowlist', allow: ['github.com'] } },
    firstCommand: { args: expect.arrayContaining(['https://github.com/a/b']) },
  })
})

test('ignores fields that the selected network hides', () => {
  for (const repository of [form.repository, 'nonsense'])
    expect(planSandbox({ ...form, policy: 'none', repository })).toEqual({
      kind: 'good',
      sandbox: { network: { policy: 'none', allow: [] }, start: true },
    })
  expect(planSandbox({ ...form, policy: 'open' })).toMatchObject({ sandbox: { network: { allow: [] } } })
})

test('rejects a repository that git must not be given', () => {
  expect(planSandbox({ ...form, repository: 'ext::sh -c id' })).toMatchObject({ kind: 'refused' })
})

test('rejects a name that control would reject', () => {
  for (const name of ['Upper', '-a', 'a_b', 'x'.repeat(64), 'a'.repeat(32)])
    expect(planSandbox({ ...form, name })).toMatchObject({ kind: 'refused' })
  expect(planSandbox({ ...form, name: ' my-box ' })).toMatchObject({ sandbox: { name: 'my-box' } })
})

test('rejects an empty list of hosts', () => {
  for (const hosts of ['', ' ,\n'])
    expect(planSandbox({ ...form, hosts })).toEqual({
      kind: 'refused',
      problem: 'Add at least one host, or set Network to None',
    })
})

test('accepts only https repositories', () => {
  expect(isRepositoryAddress('https://github.com/a/b.git')).toBe(true)
  for (const text of [
    'ext::sh -c id',
    '--upload-pack=id',
    'http://x/y',
    'ssh://-oProxyCommand=id/x',
    'file:///etc',
    'https://me:secret@x/y',
    'git@github.com:a/b',
    '',
  ])
    expect(isRepositoryAddress(text)).toBe(false)
})

test('passes the URL as an argument, never as part of the script', () => {
  const argsOf = (address: string) => cloneCommand(address).args
  expect(argsOf('https://x/a";id;"$(id)').slice(0, -1)).toEqual(argsOf('https://x/a').slice(0, -1))
  expect(argsOf("https://x/a';id;$(id)").at(-1)).toBe("https://x/a';id;$(id)")
})
