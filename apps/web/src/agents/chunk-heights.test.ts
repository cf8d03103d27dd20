import { expect, test } from 'bun:test'
import { ChunkHeights } from './chunk-heights.ts'

function heightsOf(...px: readonly number[]): ChunkHeights {
  const heights = new ChunkHeights()
  px.forEach((each, index) => heights.set(index, each))
  return heights
}

test('draws as many chunks at the end as fill twice the visible part', () => {
  const heights = heightsOf(...Array.from({ length: 100 }, () => 300))
  expect(heights.atEnd(100, 600)).toEqual({ start: 96, end: 100 })
  expect(heights.atEnd(1, 600)).toEqual({ start: 0, end: 1 })
  expect(heights.atEnd(0, 600)).toEqual({ start: 0, end: 0 })
})

test('draws chunks within one visible height of what is visible', () => {
  const heights = heightsOf(...Array.from({ length: 100 }, () => 100))
  expect(heights.around(100, 5_000, 500)).toEqual({ start: 44, end: 60 })
  expect(heights.around(100, 0, 500)).toEqual({ start: 0, end: 10 })
  expect(heights.around(100, 9_500, 500)).toEqual({ start: 89, end: 100 })
})

test('keeps the height of chunks that are not drawn, and estimates the others', () => {
  expect(heightsOf(10, 20, 30).total(0, 3)).toBe(60)
  expect(heightsOf(10).total(0, 2)).toBe(810)
})
