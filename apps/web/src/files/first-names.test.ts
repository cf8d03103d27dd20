import { expect, test } from 'bun:test'
import { firstNames } from './first-names.ts'

test('the first names are said, and how many more there are', () => {
  expect(firstNames(['a', 'b\n'], 2)).toBe('a\nb‹\\n›')
  expect(firstNames(['a', 'b', 'c', 'd'], 2)).toBe('a\nb\nand 2 more')
})
