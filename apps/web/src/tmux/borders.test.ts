import { expect, test } from 'bun:test'
import type { LayoutCell } from '../api/tmux.ts'
import { bordersOf, panesIn } from './borders.ts'

const pane = (id: string, cols: number, rows: number, left: number, top: number): LayoutCell => ({
  kind: 'pane',
  pane: id,
  cols,
  rows,
  left,
  top,
})

/** A pane at the left, two above each other at the right. */
const LAYOUT: LayoutCell = {
  kind: 'row',
  cols: 101,
  rows: 41,
  left: 0,
  top: 0,
  cells: [
    pane('%0', 50, 41, 0, 0),
    {
      kind: 'column',
      cols: 50,
      rows: 41,
      left: 51,
      top: 0,
      cells: [pane('%1', 50, 20, 51, 0), pane('%2', 50, 20, 51, 21)],
    },
  ],
}

test('a layout has a border between neighbors', () => {
  expect(bordersOf(LAYOUT)).toEqual([
    { direction: 'row', left: 50, top: 0, length: 41, pane: '%0', size: 50 },
    { direction: 'column', left: 51, top: 20, length: 50, pane: '%1', size: 20 },
  ])
  expect(panesIn(LAYOUT).map(({ pane: id }) => id)).toEqual(['%0', '%1', '%2'])
})

test('a border beside a column is moved by a pane of that column', () => {
  const turned: LayoutCell = { ...LAYOUT, cells: LAYOUT.kind === 'row' ? LAYOUT.cells.toReversed() : [] }
  expect(bordersOf(turned)[0]).toMatchObject({ pane: '%1', size: 50 })
})
