import { expect, test } from 'bun:test'
import { addMatch, type FileMatches, partsOf } from './group-matches.ts'

const match = (path: string, line: number) => ({ type: 'match', path, line, text: 'x', ranges: [] }) as const

test('matches of a file stay together', () => {
  const groups = [match('a', 1), match('a', 2), match('b', 1)].reduce<readonly FileMatches[]>(addMatch, [])
  expect(groups.map(({ path, matches }) => [path, matches.length])).toEqual([
    ['a', 2],
    ['b', 1],
  ])
})

test('a line is cut where something was found', () => {
  expect(
    partsOf({
      text: 'one two one',
      ranges: [
        [0, 3],
        [8, 11],
      ],
    }),
  ).toEqual([
    { text: 'one', isMatch: true },
    { text: ' two ', isMatch: false },
    { text: 'one', isMatch: true },
  ])
  expect(
    partsOf({
      text: 'ab',
      ranges: [
        [1, 1],
        [0, 1],
      ],
    }),
  ).toEqual([
    { text: 'a', isMatch: false },
    { text: 'b', isMatch: false },
  ])
})
