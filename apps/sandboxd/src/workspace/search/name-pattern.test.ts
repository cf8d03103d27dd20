import { expect, test } from 'bun:test'
import { namePattern, nameSearch } from './name-pattern.ts'

// Every row as Python 3.11's fnmatch.fnmatchcase answers for the lower-cased pair.
test.each([
  ['*.py', 'a.PY', true],
  ['*.py', 'a.pyc', false],
  ['test_*', 'Test_1', true],
  ['a', 'a', true],
  ['a', 'ab', false],
  ['?', '🦜', true],
  ['?', '', false],
  ['*', '', true],
  ['*', '.hidden', true],
  ['a*b*c', 'axxbxxc', true],
  ['a*b*c', 'axxbxx', false],
  ['[abc]x', 'bx', true],
  ['[!abc]x', 'bx', false],
  ['[!abc]x', 'dx', true],
  ['[a-c]', 'b', true],
  ['[a-c]', 'd', false],
  ['[c-a]', 'b', false],
  ['[]]', ']', true],
  ['[!]]', ']', false],
  ['[a', '[a', true],
  ['[', '[', true],
  ['[!', '[!', true],
  ['[]', '[]', true],
  ['[a-]', '-', true],
  ['[-a]', '-', true],
  ['[*]', '*', true],
  ['[*]', 'x', false],
  ['a.b', 'aXb', false],
  ['\\*', '\\x', true],
  ['(a|b)', 'a', false],
  ['a\nb', 'a\nb', true],
  ['*', 'a\nb', true],
  ['\udcff*', '\udcffx', true],
])('the pattern %j and the name %j: %p', (pattern, name, expected) => {
  expect(namePattern(pattern)(name)).toBe(expected)
})

test('a pattern with many stars takes no more time than its length', () => {
  expect(namePattern(`${'*a'.repeat(200)}b`)('a'.repeat(255))).toBe(false)
})

test('a text without wildcards is found inside a name', () => {
  expect(['Makefile', 'remake', 'mike'].filter(nameSearch('MAKE'))).toEqual(['Makefile', 'remake'])
  expect(['Makefile', 'remake'].filter(nameSearch('mak*'))).toEqual(['Makefile'])
})
