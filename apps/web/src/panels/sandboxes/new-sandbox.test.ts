import { expect, test } from 'bun:test'
import { cloneCommand, hasIsolation, isRepositoryAddress, networksFor, planSandbox } from './new-sandbox.ts'

const form = {
  name: '',
  network: 'allowlist',
  hosts: 'github.com',
  repository: 'https://github.com/a/b',
} as const

test('offers only an open network where sandboxes are not isolated', () => {
  expect(hasIsolation([])).toBe(true)
  expect(hasIsolation([{ isolation: 'bubblewrap' }, { isolation: null }])).toBe(true)
  expect(hasIsolation([{ isolation: 'bubblewrap' }, { isolation: 'none' }])).toBe(false)
  expect(networksFor(true)).toEqual(['none', 'allowlist', 'open'])
  expect(networksFor(false)).toEqual(['open'])
})

test('offers only the networks that the operator allows', () => {
  expect(networksFor(true, ['allowlist', 'none'])).toEqual(['none', 'allowlist'])
})

test('clones a repository first', () => {
  expect(planSandbox(form)).toMatchObject({
    kind: 'valid',
    sandbox: { network: { policy: 'allowlist', allow: ['github.com'] } },
    firstCommand: { args: expect.arrayContaining(['https://github.com/a/b']) },
  })
})

test('ignores fields that the selected network hides', () => {
  for (const repository of [form.repository, 'nonsense'])
    expect(planSandbox({ ...form, network: 'none', repository })).toEqual({
      kind: 'valid',
      sandbox: { network: { policy: 'none', allow: [] }, start: true },
    })
  expect(planSandbox({ ...form, network: 'open' })).toMatchObject({ sandbox: { network: { allow: [] } } })
})

test('rejects a repository that git must not be given', () => {
  expect(planSandbox({ ...form, repository: 'ext::sh -c id' })).toMatchObject({ kind: 'invalid' })
})

test('rejects a name that control would reject', () => {
  for (const name of ['Upper', '-a', 'a_b', 'x'.repeat(64), 'a'.repeat(32)])
    expect(planSandbox({ ...form, name })).toMatchObject({ kind: 'invalid' })
  expect(planSandbox({ ...form, name: ' my-box ' })).toMatchObject({ sandbox: { name: 'my-box' } })
})

test('rejects an empty list of hosts', () => {
  for (const hosts of ['', ' ,\n'])
    expect(planSandbox({ ...form, hosts })).toEqual({
      kind: 'invalid',
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
