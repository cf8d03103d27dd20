import { MAX_RESIZES } from './limits.ts'

/** The size a terminal has from an output offset on. */
export interface Resize {
  /** Counts resizes of the session, so that a follower knows which it has told. */
  readonly serial: number
  readonly at: number
  readonly cols: number
  readonly rows: number
}

/** Sizes of a terminal by output offset, so that a renderer or a viewer can follow exactly. Bounded: the oldest merge. */
export class ResizeLog {
  readonly #resizes: Resize[]

  /** The size in force now. */
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

  /** The size in force at `offset`, as far as is still known. */
  sizeAt(offset: number): Resize {
    return this.#resizes.findLast((resize) => resize.at <= offset) ?? this.#resizes[0] ?? this.#current
  }

  /** The oldest resize that came after the one with this serial number. */
  after(serial: number): Resize | undefined {
    if (serial >= this.#current.serial) return undefined
    return this.#resizes.find((resize) => resize.serial > serial)
  }

  /** Resizes behind `from`, up to and including `to`. */
  between(from: number, to: number): readonly Resize[] {
    return this.#resizes.filter((resize) => resize.at > from && resize.at <= to)
  }
}
