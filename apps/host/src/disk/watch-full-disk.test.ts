import { expect, test } from 'bun:test'
import { writtenBetween } from './watch-full-disk.ts'

test('counts what processes wrote between two polls, those that started meanwhile included', () => {
  const before = new Map([
    [1, 10],
    [2, 5],
    [3, 7],
  ])
  expect(writtenBetween(before, before)).toBe(0)
  expect(writtenBetween(before, new Map([[1, 12]]))).toBe(2)
  expect(
    writtenBetween(
      before,
      new Map([
        [1, 10],
        [4, 3],
      ]),
    ),
  ).toBe(3)
  // Another process with the same pid.
  expect(writtenBetween(before, new Map([[2, 1]]))).toBe(0)
})
