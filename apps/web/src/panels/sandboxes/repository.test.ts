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

test('nothing in an address ends its quotes', () => {
  expect(cloneCommand("https://x/a';id;'")).toBe("git clone -- 'https://x/a%27;id;%27' .")
})
