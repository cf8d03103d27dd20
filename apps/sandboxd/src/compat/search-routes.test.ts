import { expect, test } from 'bun:test'
import { compareFound } from './search-routes.ts'

test('sorts folders first, then by lower-cased name, contents after their folder', () => {
  const paths = [
    'B',
    'a',
    'a-b/',
    'a-b/z',
    'Zed/',
    'Zed/q/',
    'Zed/q/1',
    'Zed/A',
    'link@',
    'é',
    '🦜',
    '\uffff',
  ]
  const names = paths.map((text) => {
    const path = text.replace(/[/@]$/, '')
    return { path, name: path, kind: 'file' as const, isFolder: path !== text }
  })
  const order = ['a-b', 'a-b/z', 'link', 'Zed', 'Zed/q', 'Zed/q/1', 'Zed/A', 'a', 'B', 'é', '\uffff', '🦜']
  expect(names.toSorted(compareFound).map(({ path }) => path)).toEqual(order)
  expect(
    names
      .toReversed()
      .toSorted(compareFound)
      .map(({ path }) => path),
  ).toEqual(order)
})
