import { expect, test } from 'bun:test'
import { checkPath, checkRef } from './repository.ts'

test.each([
  'main',
  'HEAD',
  'HEAD~3',
  'HEAD^2~1',
  'origin/feature-x',
  'v1.2.3',
  'refs/heads/a',
  'ä🦜',
  'a@b',
  '@',
  'a'.repeat(40),
  'fix/#12',
  'a{b}',
  'stash',
])('accepts the name of a commit: %s', (ref) => {
  expect(checkRef(ref, 'ref')).toBe(ref)
})

test.each([
  '',
  '-h',
  '--output=x',
  '--upload-pack=touch x',
  '-c',
  'a..b',
  'a...b',
  '..',
  '@{-1}',
  'main@{1}',
  '@{u}',
  'HEAD:../../x',
  ':/x',
  'HEAD^{/x}',
  'a b',
  'a\nb',
  'a\0b',
  'a?',
  'a*',
  '[a',
  'a\\b',
  '^main',
  '\ud800',
])('refuses an invalid commit name and names the parameter: %j (threat T18)', (ref) => {
  expect(() => checkRef(ref, 'from')).toThrow('Cannot use parameter "from": ')
})

test('refuses a name that is too long', () => {
  expect(() => checkRef('x'.repeat(1025), 'ref')).toThrow('is not the name of a commit')
})

test('an error message contains no control or bidirectional characters (threat T24)', () => {
  expect(() => checkRef('-\u{1b}[2J\u{202e}', 'ref')).toThrow(/^[ -~\u{fffd}]*$/u)
})

test('normalizes paths, and none leaves the folder (threat T12)', () => {
  expect(checkPath('./a//b/')).toBe('a/b')
  expect(checkPath('./')).toBe('.')
  expect(checkPath(':(attr)x')).toBe(':(attr)x')
  for (const path of ['', '/etc/passwd', '..', '../x', 'a/../../x', 'a/..', 'a\0', '\u{d800}'])
    expect(() => checkPath(path)).toThrow('Cannot use the path')
})
