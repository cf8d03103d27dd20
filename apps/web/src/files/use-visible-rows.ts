import { type RefCallback, useCallback, useRef, useState } from 'react'
import { rangeInSight, ROW_PX, type RowRange, scrollToSee } from './visible-rows.ts'

/** A list that draws only the rows that can be seen. */
export interface VisibleRows {
  /** The element that scrolls. */
  readonly ref: RefCallback<HTMLElement>
  readonly range: RowRange
  /** Rows that are seen at once. */
  readonly pageRows: () => number
  readonly see: (row: number) => void
  /** Keeps in place what is seen while rows come or go above it. */
  readonly shift: (rows: number) => void
  readonly firstRow: () => number
}

/** `scroll` says how far it is scrolled at first, and is told when that changes. */
export function useVisibleRows(scroll: { scrollPx: number }): VisibleRows {
  const element = useRef<HTMLElement>(null)
  const [range, setRange] = useState<RowRange>({ from: 0, to: 0 })
  const measure = useCallback(() => {
    if (element.current === null) return
    const { scrollTop, clientHeight } = element.current
    scroll.scrollPx = scrollTop
    const next = rangeInSight({ scrollPx: scrollTop, heightPx: clientHeight })
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
      scrollTo(scrollToSee(row, { ...scroll, heightPx: element.current?.clientHeight ?? ROW_PX })),
    shift: (rows) => scrollTo(scroll.scrollPx + rows * ROW_PX),
    firstRow: () => Math.floor(scroll.scrollPx / ROW_PX),
  }
}
