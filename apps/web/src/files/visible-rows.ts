/** Height of a line of the tree, in pixels of the page. */
export const ROW_PX = 24
/** Rows that are drawn above and below those that can be seen, for what moves before it is measured. */
const SPARE_ROWS = 12

/** What of a list can be seen. */
export interface Sight {
  readonly scrollPx: number
  readonly heightPx: number
}

/** Rows from one, up to but without another. */
export interface RowRange {
  readonly from: number
  readonly to: number
}

/** The rows of a list that are drawn. */
export function rangeInSight({ scrollPx, heightPx }: Sight): RowRange {
  const first = Math.max(0, Math.floor(scrollPx / ROW_PX))
  return {
    from: Math.max(0, first - SPARE_ROWS),
    to: first + Math.ceil(heightPx / ROW_PX) + 1 + SPARE_ROWS,
  }
}

/** Where a list is scrolled to for a row to be seen whole, and no further. */
export function scrollToSee(row: number, { scrollPx, heightPx }: Sight): number {
  const top = row * ROW_PX
  if (top < scrollPx) return top
  return Math.max(scrollPx, top + ROW_PX - heightPx)
}
