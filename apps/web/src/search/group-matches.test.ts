import { expect, test } from 'bun:test'
import { addMatch, aroundMatch, type FileMatches, partsOf } from './group-matches.ts'

const match = (path: string, line: number) => ({ type: 'match', path, line, text: 'x', ranges: [] }) as const

test('groups matches by file', () => {
  const groups = [match('a', 1), match('a', 2), match('b', 1)].reduce<readonly FileMatches[]>(addMatch, [])
  expect(groups.map(({ path, matches }) => [path, matches.length])).toEqual([
    ['a', 2],
    ['b', 1],
  ])
})

test('splits a line at its matches', () => {
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

test('shows a match far into its line with little before it', () => {
  const text = `${'x'.repeat(500)} before needle after ${'needle '.repeat(100)}`
  const first = text.indexOf('needle')
  const cut = aroundMatch({
    text,
    ranges: [
      [first, first + 6],
      [first + 13, first + 19],
      [first + 600, first + 606],
    ],
  })
  expect(cut.text).toStartWith('…xxxx before needle after needle')
  expect(cut.text).toEndWith('…')
  expect(cut.text.length).toBeLessThan(310)
  expect(cut.ranges.map(([from, to]) => cut.text.slice(from, to))).toEqual(['needle', 'needle'])
})

test('keeps the start of a line with an early match, without indentation', () => {
  expect(aroundMatch({ text: '\t\t  const needle', ranges: [[10, 16]] })).toEqual({
    text: 'const needle',
    ranges: [[6, 12]],
  })
  expect(aroundMatch({ text: '    ', ranges: [[0, 2]] })).toEqual({ text: '    ', ranges: [[0, 2]] })
})

test('does not split surrogate pairs', () => {
  const text = `${'😀'.repeat(20)}a`
  const { text: cut, ranges } = aroundMatch({ text: `a${text}`, ranges: [[41, 42]] })
  expect(cut.isWellFormed()).toBe(true)
  expect(ranges.map(([from, to]) => cut.slice(from, to))).toEqual(['a'])
  expect(aroundMatch({ text: `${text}`, ranges: [[40, 41]] }).text.isWellFormed()).toBe(true)
})
