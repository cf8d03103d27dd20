import { expect, test } from 'bun:test'
import { endsAsFolder, hasNoName, lastName, parentOf, readPlace, within } from './place.ts'

test.each([
  ['box:a/b', { is: 'sandbox', sandbox: 'box', path: 'a/b' }],
  ['box:', { is: 'sandbox', sandbox: 'box', path: '.' }],
  ['box:.', { is: 'sandbox', sandbox: 'box', path: '.' }],
  ['box:./a//b/', { is: 'sandbox', sandbox: 'box', path: 'a/b/' }],
  ['box:a/.', { is: 'sandbox', sandbox: 'box', path: 'a/.' }],
  ['box:a:b', { is: 'sandbox', sandbox: 'box', path: 'a:b' }],
  ['-', { is: 'stream' }],
  ['a/b', { is: 'local', path: 'a/b' }],
  ['./box:a', { is: 'local', path: './box:a' }],
  ['Box:a', { is: 'local', path: 'Box:a' }],
  [':a', { is: 'local', path: ':a' }],
] as const)('%s is read as a place', (word, place) => {
  expect(readPlace(word)).toEqual(place)
})

test('an empty path is none, and one in a sandbox is relative', () => {
  for (const word of ['', 'box:/etc', 'box://']) expect(() => readPlace(word)).toThrow()
})

test('the last name is what a copy is called', () => {
  expect(['a/b', 'a/b/', 'b'].map(lastName)).toEqual(['b', 'b', 'b'])
  expect(['.', 'a/.', '..', 'a/../', '/'].map(lastName)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect(['a/', 'a/.', '.', '..', '/'].map(endsAsFolder)).toEqual([true, true, true, true, true])
  expect(['a', 'a.', 'a..', '..a', 'a/b'].map(endsAsFolder)).toEqual([false, false, false, false, false])
  expect(['a/', '..a', 'a/b.'].map(hasNoName)).toEqual([false, false, false])
})

test('paths of a sandbox are put together and taken apart', () => {
  expect([parentOf('a'), parentOf('a/b/'), parentOf('a/b/c')]).toEqual(['.', 'a', 'a/b'])
  expect([within('.', 'x'), within('a/', 'x'), within('a/.', 'x')]).toEqual(['x', 'a/x', 'a/x'])
})
