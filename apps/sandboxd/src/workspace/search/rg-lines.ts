/** What is kept of a line that is longer than it may be. */
export interface CutLine {
  readonly head: Uint8Array
  /** From the marker on; undefined when the line has none behind its head. */
  readonly tail: Uint8Array | undefined
}

export type RgLine = Uint8Array | CutLine

export interface LineLimits {
  /** Longest line that is kept whole. */
  readonly maxBytes: number
  /** Kept of the beginning of a longer one, and from its marker on. */
  readonly keptBytes: number
}

const NEWLINE = 0x0a

/**
 * Cuts a stream of bytes into lines and holds no more of one than the limits say, however long it is: of a longer line its
 * beginning, and what follows the first `marker` behind that.
 */
export class RgLines {
  readonly #limits: LineLimits
  readonly #marker: Uint8Array
  /** The line so far, while it may still be kept whole. */
  #pieces: Uint8Array[] = []
  #bytes = 0
  /** Set once the line is too long. */
  #long: LongLine | undefined

  constructor(limits: LineLimits, marker: string) {
    this.#limits = limits
    this.#marker = Buffer.from(marker)
  }

  /** The lines that a chunk completes. */
  *push(chunk: Uint8Array): Generator<RgLine> {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from)
      this.#add(chunk.subarray(from, end < 0 ? chunk.byteLength : end))
      if (end < 0) return
      yield this.#take()
      from = end + 1
    }
  }

  #add(piece: Uint8Array): void {
    this.#bytes += piece.byteLength
    if (this.#long !== undefined) this.#long.add(piece)
    else this.#pieces.push(piece)
    if (this.#long !== undefined || this.#bytes <= this.#limits.maxBytes) return
    this.#long = new LongLine(this.#limits.keptBytes, this.#marker)
    for (const kept of this.#pieces) this.#long.add(kept)
    this.#pieces = []
  }

  #take(): RgLine {
    const line = this.#long?.take() ?? join(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    this.#long = undefined
    return line
  }
}

/** A line of which two parts are kept. */
class LongLine {
  readonly #keptBytes: number
  readonly #marker: Uint8Array
  #head: Uint8Array = new Uint8Array()
  /** The end of what was looked through: the marker may begin there. */
  #overlap: Uint8Array = new Uint8Array()
  #tail: Uint8Array | undefined

  constructor(keptBytes: number, marker: Uint8Array) {
    this.#keptBytes = keptBytes
    this.#marker = marker
  }

  add(piece: Uint8Array): void {
    const room = this.#keptBytes - this.#head.byteLength
    if (room > 0) this.#head = join([this.#head, piece.subarray(0, room)])
    this.#seek(piece.subarray(Math.max(room, 0)))
  }

  #seek(piece: Uint8Array): void {
    if (this.#tail !== undefined) {
      const room = this.#keptBytes - this.#tail.byteLength
      if (room > 0) this.#tail = join([this.#tail, piece.subarray(0, room)])
      return
    }
    const seen = Buffer.concat([this.#overlap, piece])
    const at = seen.indexOf(this.#marker)
    if (at >= 0) this.#tail = seen.subarray(at, at + this.#keptBytes).slice()
    else this.#overlap = seen.subarray(-(this.#marker.byteLength - 1)).slice()
  }

  take(): CutLine {
    return { head: this.#head, tail: this.#tail }
  }
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)
}
