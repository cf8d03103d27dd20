import { expect, test } from 'bun:test'
import { chooseRepository, mayBeRepository, needsChooser } from './repositories.ts'

test('the chosen repository is shown while it is there, otherwise the own one or the first', () => {
  expect(chooseRepository(['.', 'a', 'b'], 'b')).toBe('b')
  expect(chooseRepository(['.', 'a'], 'gone')).toBe('.')
  expect(chooseRepository(['a', 'b'], undefined)).toBe('a')
  expect(chooseRepository([], 'a')).toBe('.')
})

test('there is a choice unless the only repository is the workspace', () => {
  expect([[], ['.'], ['a'], ['.', 'a']].map(needsChooser)).toEqual([false, false, true, true])
})

test('repositories are looked for again when something changes where they may lie', () => {
  expect(mayBeRepository(['clone'])).toBe(true)
  expect(mayBeRepository(['clone/.git'])).toBe(true)
  expect(mayBeRepository(['a/clone/.git'])).toBe(true)
  expect(mayBeRepository(['clone/.git/index', 'a/b/c', 'a/b/c/.git'])).toBe(false)
})
