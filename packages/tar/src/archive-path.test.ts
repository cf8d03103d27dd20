import { expect, test } from 'bun:test'
import { comparePaths, readArchivePath, staysBeneath } from './archive-path.ts'

test.each([
  ['a/b', ['a', 'b']],
  ['./a//b/', ['a', 'b']],
  ['.', []],
  ['..a/b..', ['..a', 'b..']],
  ['a\\..\\b', ['a\\..\\b']],
])('a path of an archive is its components: %p', (path, parts) => {
  expect(readArchivePath(path)).toEqual(parts)
})

test.each([
  '',
  '/',
  '/etc/passwd',
  '..',
  '../x',
  'a/../../x',
  'a/..',
  './../x',
  'a\0b',
  'a/'.repeat(300),
  'n'.repeat(256),
  '\u{e9}'.repeat(128),
  '\ud800',
  `${'n'.repeat(200)}/`.repeat(21),
])('a path of an archive that leads elsewhere, or nowhere, is refused: case %# (threat T17)', (path) => {
  expect(readArchivePath(path)).toHaveProperty('refused')
})

test.each([
  ['x', 0],
  ['x/y', 0],
  ['./x', 0],
  ['../x', 1],
  ['./../../x', 2],
  ['..', 1],
])('a link to %p stays beneath, %p folders deep', (target, depth) => {
  expect(staysBeneath(target, depth)).toBe(true)
})

test.each([
  ['', 3],
  ['/etc', 3],
  ['..', 0],
  ['../x', 0],
  ['../../x', 1],
  // `..` after a component is refused, because that component may be a link.
  ['x/../../y', 5],
  ['x/..', 5],
  ['../x/../y', 5],
  ['a\0', 1],
])('a link to %p leaves, %p folders deep (threat T17)', (target, depth) => {
  expect(staysBeneath(target, depth)).toBe(false)
})

test('paths are ordered by the bytes of their components, folders before their content', () => {
  const ordered = [
    'a',
    'a/b',
    'a/b/c',
    'a/c',
    'a-b',
    'a.b',
    'b',
    'b\u{e9}',
    'b\u{ffff}',
    'b\u{1f984}',
    'b\udcff',
  ]
  const mixed = ordered.toReversed().toSorted(comparePaths)
  expect(mixed).toEqual(ordered)
})
