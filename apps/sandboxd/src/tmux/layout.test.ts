import { describe, expect, test } from 'bun:test'
import { findNeighbor, formatLayout, panesOf, parseLayout } from './layout.ts'

/** Written by tmux 3.3a. */
const TWO = 'f91d,120x40,0,0{60x40,0,0,0,59x40,61,0,1}'

describe('a layout', () => {
  test('has the size and position of each pane', () => {
    expect(parseLayout(TWO)).toEqual({
      kind: 'row',
      cols: 120,
      rows: 40,
      left: 0,
      top: 0,
      cells: [
        { kind: 'pane', pane: '%0', cols: 60, rows: 40, left: 0, top: 0 },
        { kind: 'pane', pane: '%1', cols: 59, rows: 40, left: 61, top: 0 },
      ],
    })
  })

  test('is written as it was read', () => {
    const cell = parseLayout(TWO)
    expect(cell && formatLayout(cell)).toBe(TWO)
    expect(cell && panesOf(cell).map(({ pane }) => pane)).toEqual(['%0', '%1'])
  })

  test('has neighbors', () => {
    const cell = parseLayout(TWO)
    if (cell === undefined) throw new Error('No layout')
    expect(findNeighbor(cell, '%0', 'right')).toBe('%1')
    expect(findNeighbor(cell, '%1', 'left')).toBe('%0')
    expect(findNeighbor(cell, '%0', 'left')).toBeUndefined()
    expect(findNeighbor(cell, '%0', 'down')).toBeUndefined()
    expect(findNeighbor(cell, '%9', 'left')).toBeUndefined()
  })

  test('is refused when it is malformed', () => {
    for (const text of ['', 'f91d', `0000${TWO.slice(4)}`, `${TWO},1`, TWO.slice(0, -1)])
      expect(parseLayout(text)).toBeUndefined()
  })
})
