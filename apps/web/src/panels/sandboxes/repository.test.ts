import { expect, test } from 'bun:test'
import { cloneCommand, isRepositoryAddress } from './repository.ts'

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
