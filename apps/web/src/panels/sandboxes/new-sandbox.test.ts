import { expect, test } from 'bun:test'
import { cloneCommand, isRepositoryAddress, networksFor, planSandbox } from './new-sandbox.ts'

const form = {
  name: '',
  policy: 'allowlist',
  hosts: 'github.com',
  repository: 'https://github.com/a/b',
} as const

test('only an open network can be chosen where sandboxes are known not to be isolated', () => {
  expect(networksFor([])[0]).toBe('none')
  expect(networksFor([{ isolation: 'bubblewrap' }, { isolation: null }])).toHaveLength(3)
  expect(networksFor([{ isolation: 'none' }])).toEqual(['open'])
})

test('a repository is cloned first', () => {
  expect(planSandbox(form)).toMatchObject({
    is: 'good',
    sandbox: { network: { policy: 'allowlist', allow: ['github.com'] } },
    firstCommand: { args: expect.arrayContaining(['https://github.com/a/b']) },
  })
})

test('what the chosen network hides does not count', () => {
  for (const repository of [form.repository, 'nonsense'])
    expect(planSandbox({ ...form, policy: 'none', repository })).toEqual({
      is: 'good',
      sandbox: { network: { policy: 'none', allow: [] }, start: true },
    })
  expect(planSandbox({ ...form, policy: 'open' })).toMatchObject({ sandbox: { network: { allow: [] } } })
})

test('a repository that git is not to be given is refused', () => {
  expect(planSandbox({ ...form, repository: 'ext::sh -c id' })).toMatchObject({ is: 'refused' })
})

test('rejects a name that control would reject', () => {
  for (const name of ['Upper', '-a', 'a_b', 'x'.repeat(64), 'a'.repeat(32)])
    expect(planSandbox({ ...form, name })).toMatchObject({ is: 'refused' })
  expect(planSandbox({ ...form, name: ' my-box ' })).toMatchObject({ sandbox: { name: 'my-box' } })
})

test('a list of hosts with none in it is refused', () => {
  for (const hosts of ['', ' ,\n'])
    expect(planSandbox({ ...form, hosts })).toEqual({
      is: 'refused',
      problem: 'Add at least one host, or set Network to None',
    })
})

test('a repository is at an address of the web', () => {
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

test('an address is an argument of the script, never a part of it', () => {
  const argsOf = (address: string) => cloneCommand(address).args
  expect(argsOf('https://x/a";id;"$(id)').slice(0, -1)).toEqual(argsOf('https://x/a').slice(0, -1))
  expect(argsOf("https://x/a';id;$(id)").at(-1)).toBe("https://x/a';id;$(id)")
})
