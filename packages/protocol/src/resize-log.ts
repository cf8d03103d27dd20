import { MAX_RESIZES } from './limits.ts'

/** The size of a terminal from an output offset on. */
export interface Resize {
  /** Number of the resize in the session. */
  readonly serial: number
  readonly at: number
  readonly cols: number
  readonly rows: number
}

/** Sizes of a terminal by output offset. Bounded: the oldest entries are merged. */
export class ResizeLog {
  readonly #resizes: Resize[]

  /** The current size. */
  #current: Resize

  constructor(cols: number, rows: number) {
    this.#current = { serial: 0, at: 0, cols, rows }
    this.#resizes = [this.#current]
  }

  get current(): Resize {
    return this.#current
  }

  record(at: number, cols: number, rows: number): void {
    if (this.#current.at === at) this.#resizes.pop()
    this.#current = { serial: this.#current.serial + 1, at, cols, rows }
    this.#resizes.push(this.#current)
    if (this.#resizes.length > MAX_RESIZES) this.#resizes.shift()
  }

  /** The size at `offset`, as far as it is stored. */
  sizeAt(offset: number): Resize {
    return this.#resizes.findLast((resize) => resize.at <= offset) ?? this.#resizes[0] ?? this.#current
  }

  /** The first resize after the one with this serial number. */
  after(serial: number): Resize | undefined {
    if (serial >= this.#current.serial) return undefined
    return this.#resizes.find((resize) => resize.serial > serial)
  }

  /** Resizes after `from`, up to and including `to`. */
  between(from: number, to: number): readonly Resize[] {
    return this.#resizes.filter((resize) => resize.at > from && resize.at <= to)
  }
}
