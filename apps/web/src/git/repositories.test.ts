import { expect, test } from 'bun:test'
import { chooseRepository, mayBeRepository, needsChooser } from './repositories.ts'

test("shows the chosen repository while it exists, otherwise the workspace's own or the first", () => {
  expect(chooseRepository(['.', 'a', 'b'], 'b')).toBe('b')
  expect(chooseRepository(['.', 'a'], 'gone')).toBe('.')
  expect(chooseRepository(['a', 'b'], undefined)).toBe('a')
  expect(chooseRepository([], 'a')).toBe('.')
})

test('offers a choice unless the only repository is the workspace', () => {
  expect([[], ['.'], ['a'], ['.', 'a']].map(needsChooser)).toEqual([false, false, true, true])
})

test('searches again when something changes where repositories may be', () => {
  expect(mayBeRepository(['clone'])).toBe(true)
  expect(mayBeRepository(['clone/.git'])).toBe(true)
  expect(mayBeRepository(['a/clone/.git'])).toBe(true)
  expect(mayBeRepository(['clone/.git/index', 'a/b/c', 'a/b/c/.git'])).toBe(false)
})
