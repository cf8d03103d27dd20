import { type RefCallback, useCallback, useRef, useState } from 'react'

/** Height of a tree row in CSS pixels. */
export const ROW_PX = 24
/** Rows rendered beyond the viewport, to cover scrolling until the next measurement. */
const SPARE_ROWS = 12

/** The visible part of a list. */
interface Viewport {
  readonly scrollPx: number
  readonly heightPx: number
}

/** Half-open range of rows. */
interface RowRange {
  readonly from: number
  readonly to: number
}

/** The rows to render. */
export function visibleRange({ scrollPx, heightPx }: Viewport): RowRange {
  const first = Math.max(0, Math.floor(scrollPx / ROW_PX))
  return {
    from: Math.max(0, first - SPARE_ROWS),
    to: first + Math.ceil(heightPx / ROW_PX) + 1 + SPARE_ROWS,
  }
}

/** The least scroll offset that shows a row completely. */
export function scrollToShow(row: number, { scrollPx, heightPx }: Viewport): number {
  const top = row * ROW_PX
  if (top < scrollPx) return top
  return Math.max(scrollPx, top + ROW_PX - heightPx)
}

/** A virtualized list. */
export interface VisibleRows {
  /** The scrolling element. */
  readonly ref: RefCallback<HTMLElement>
  readonly range: RowRange
  /** Rows per page. */
  readonly pageRows: () => number
  readonly see: (row: number) => void
  /** Scrolls by rows, to keep the visible ones in place when rows above them come or go. */
  readonly shift: (rows: number) => void
  readonly firstRow: () => number
}

/** `scroll` provides the initial scroll offset and is kept up to date. */
export function useVisibleRows(scroll: { scrollPx: number }): VisibleRows {
  const element = useRef<HTMLElement>(null)
  const [range, setRange] = useState<RowRange>({ from: 0, to: 0 })
  const measure = useCallback(() => {
    if (element.current === null) return
    const { scrollTop, clientHeight } = element.current
    scroll.scrollPx = scrollTop
    const next = visibleRange({ scrollPx: scrollTop, heightPx: clientHeight })
    setRange((old) => (old.from === next.from && old.to === next.to ? old : next))
  }, [scroll])
  const ref = useCallback(
    (mounted: HTMLElement | null) => {
      if (mounted === null) return undefined
      element.current = mounted
      mounted.scrollTop = scroll.scrollPx
      const observer = new ResizeObserver(measure)
      observer.observe(mounted)
      mounted.addEventListener('scroll', measure, { passive: true })
      measure()
      return () => {
        observer.disconnect()
        mounted.removeEventListener('scroll', measure)
        element.current = null
      }
    },
    [measure, scroll],
  )
  const scrollTo = (px: number): void => {
    if (element.current === null || element.current.scrollTop === px) return
    element.current.scrollTop = px
    measure()
  }
  return {
    ref,
    range,
    pageRows: () => Math.max(1, Math.floor((element.current?.clientHeight ?? 0) / ROW_PX) - 1),
    see: (row) =>
      scrollTo(scrollToShow(row, { ...scroll, heightPx: element.current?.clientHeight ?? ROW_PX })),
    shift: (rows) => scrollTo(scroll.scrollPx + rows * ROW_PX),
    firstRow: () => Math.floor(scroll.scrollPx / ROW_PX),
  }
}
