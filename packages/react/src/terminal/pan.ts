/** Further than a finger trembles that only taps. */
const SLOP_PX = 8
/** What a finger did longer ago says nothing of how fast it left. */
const RECENT_MS = 100
/** How long until a glide has a third of its speed. */
const GLIDE_MS = 325

/** Where a finger is, and when. */
export interface FingerPlace {
  readonly x: number
  readonly y: number
  readonly atMs: number
}

/** One finger's way over a screen, from where it was put down. */
export class Pan {
  readonly #start: FingerPlace
  #recent: readonly FingerPlace[]
  #kind: 'tap' | 'upright' | 'sideways' = 'tap'

  constructor(start: FingerPlace) {
    this.#start = start
    this.#recent = [start]
  }

  /** Whether it moves what it lies on up and down; one that went sideways first never does. */
  get isUpright(): boolean {
    return this.#kind === 'upright'
  }

  /** Answers by how many pixels it took along what it lies on since the last time. */
  moveTo(place: FingerPlace): number {
    const last = this.#recent.at(-1) ?? this.#start
    if (this.#kind === 'tap') this.#kind = this.#kindAt(place)
    if (!this.isUpright) return 0
    this.#recent = [...this.#recent, place].filter(({ atMs }) => place.atMs - atMs <= RECENT_MS)
    return place.y - last.y
  }

  /** Pixels in a millisecond, as it leaves. */
  speedAt(nowMs: number): number {
    const recent = this.#recent.filter(({ atMs }) => nowMs - atMs <= RECENT_MS)
    const [first, last] = [recent[0], recent.at(-1)]
    if (!this.isUpright || first === undefined || last === undefined) return 0
    return last.atMs === first.atMs ? 0 : (last.y - first.y) / (last.atMs - first.atMs)
  }

  #kindAt({ x, y }: FingerPlace): 'tap' | 'upright' | 'sideways' {
    const [wide, high] = [Math.abs(x - this.#start.x), Math.abs(y - this.#start.y)]
    if (Math.max(wide, high) < SLOP_PX) return 'tap'
    return high >= wide ? 'upright' : 'sideways'
  }
}

/** The speed of what was let go, a while later. */
export function slowDown(speed: number, elapsedMs: number): number {
  return speed * Math.exp(-elapsedMs / GLIDE_MS)
}

/** Makes whole lines of pixels, and keeps what is left for the next ones. */
export class LineCount {
  #rest = 0

  take(pixels: number, lineHeight: number): number {
    const all = this.#rest + pixels
    const lines = Math.trunc(all / lineHeight)
    this.#rest = all - lines * lineHeight
    return lines
  }
}
