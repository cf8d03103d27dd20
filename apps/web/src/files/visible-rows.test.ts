import { expect, test } from 'bun:test'
import { rangeInSight, ROW_PX, scrollToSee } from './visible-rows.ts'

test('the rows in sight are drawn with some around them', () => {
  expect(rangeInSight({ scrollPx: 0, heightPx: 10 * ROW_PX })).toEqual({ from: 0, to: 23 })
  expect(rangeInSight({ scrollPx: 100.5 * ROW_PX, heightPx: 10 * ROW_PX })).toEqual({ from: 88, to: 123 })
  // Some browsers scroll beyond an end.
  expect(rangeInSight({ scrollPx: -50, heightPx: 0 })).toEqual({ from: 0, to: 13 })
})

test('a list is scrolled no further than for a row to be seen', () => {
  const sight = { scrollPx: 10 * ROW_PX, heightPx: 5 * ROW_PX }
  expect(scrollToSee(9, sight)).toBe(9 * ROW_PX)
  expect(scrollToSee(10, sight)).toBe(10 * ROW_PX)
  expect(scrollToSee(14, sight)).toBe(10 * ROW_PX)
  expect(scrollToSee(15, sight)).toBe(11 * ROW_PX)
})
