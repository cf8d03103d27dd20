import type { LayoutCell } from '../api/tmux.ts'

/** A border between two neighbors of a layout, one character wide. */
export interface Border {
  readonly direction: 'row' | 'column'
  readonly left: number
  readonly top: number
  /** In characters. */
  readonly length: number
  /** The pane whose size moves the border, and that size now. */
  readonly pane: string
  readonly size: number
}

/** The panes of a layout. */
export function panesIn(cell: LayoutCell): readonly Extract<LayoutCell, { kind: 'pane' }>[] {
  return cell.kind === 'pane' ? [cell] : cell.cells.flatMap(panesIn)
}

/** A pane whose size in this direction is that of the cell, so that resizing it resizes the cell. */
function paneAcross(cell: LayoutCell, direction: 'row' | 'column'): string | undefined {
  if (cell.kind === 'pane') return cell.pane
  if (cell.kind === direction) return undefined
  for (const inner of cell.cells) {
    const found = paneAcross(inner, direction)
    if (found !== undefined) return found
  }
  return undefined
}

/** The borders that can be moved. */
export function bordersOf(cell: LayoutCell): readonly Border[] {
  if (cell.kind === 'pane') return []
  const direction = cell.kind
  const own = cell.cells.slice(0, -1).flatMap((inner): readonly Border[] => {
    const pane = paneAcross(inner, direction)
    if (pane === undefined) return []
    return direction === 'row'
      ? [
          {
            direction,
            left: inner.left + inner.cols,
            top: cell.top,
            length: cell.rows,
            pane,
            size: inner.cols,
          },
        ]
      : [
          {
            direction,
            left: cell.left,
            top: inner.top + inner.rows,
            length: cell.cols,
            pane,
            size: inner.rows,
          },
        ]
  })
  return [...own, ...cell.cells.flatMap(bordersOf)]
}
