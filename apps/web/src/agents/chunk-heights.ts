/** Chunks that are drawn: from `start` up to but not including `end`. */
export interface ChunkRange {
  readonly start: number
  readonly end: number
}

/** For a chunk that was never drawn. */
const ESTIMATE_PX = 800
/** Chunks at the end that are drawn in any case. */
const MIN_AT_END = 2

/** Heights of chunks of a list, and which of them are near what is visible. */
export class ChunkHeights {
  readonly #heights: number[] = []

  set(index: number, px: number): void {
    this.#heights[index] = px
  }

  /** Height of a range. */
  total(start: number, end: number): number {
    let px = 0
    for (let at = start; at < end; at += 1) px += this.#at(at)
    return px
  }

  /** The last chunks, as many as fill the visible part and what is just above it. */
  atEnd(count: number, visiblePx: number): ChunkRange {
    let start = count
    let px = 0
    while (start > 0 && (px < visiblePx * 2 || count - start < MIN_AT_END)) {
      start -= 1
      px += this.#at(start)
    }
    return { start, end: count }
  }

  /** Chunks within one visible height of what is visible. */
  around(count: number, scrollPx: number, visiblePx: number): ChunkRange {
    let [start, top] = [0, 0]
    while (start < count - 1 && top + this.#at(start) < scrollPx - visiblePx) {
      top += this.#at(start)
      start += 1
    }
    let end = start
    while (end < count && (end === start || top < scrollPx + visiblePx * 2)) {
      top += this.#at(end)
      end += 1
    }
    return { start, end }
  }

  #at(index: number): number {
    return this.#heights[index] ?? ESTIMATE_PX
  }
}
