import { expect, test } from 'bun:test'
import { visibleRange, ROW_PX, scrollToShow } from './visible-rows.ts'

test('renders the visible rows and some around them', () => {
  expect(visibleRange({ scrollPx: 0, heightPx: 10 * ROW_PX })).toEqual({ from: 0, to: 23 })
  expect(visibleRange({ scrollPx: 100.5 * ROW_PX, heightPx: 10 * ROW_PX })).toEqual({ from: 88, to: 123 })
  // Some browsers overscroll.
  expect(visibleRange({ scrollPx: -50, heightPx: 0 })).toEqual({ from: 0, to: 13 })
})

test('scrolls no further than needed to show a row', () => {
  const sight = { scrollPx: 10 * ROW_PX, heightPx: 5 * ROW_PX }
  expect(scrollToShow(9, sight)).toBe(9 * ROW_PX)
  expect(scrollToShow(10, sight)).toBe(10 * ROW_PX)
  expect(scrollToShow(14, sight)).toBe(10 * ROW_PX)
  expect(scrollToShow(15, sight)).toBe(11 * ROW_PX)
})
