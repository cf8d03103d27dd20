import { freeBytes } from '@sandwire/version-format'

/** Memory is taken in pieces of this size, as needed. */
const PIECE_BYTES = 4 * 1024 * 1024

/**
 * Memory for content that was read and is not yet packed. It is used again by the next save: page faults of new memory would take
 * longer than reading into it, while processes are stopped.
 */
export class ContentArena {
  readonly #pieces: Uint8Array<ArrayBuffer>[] = []
  #at = 0
  #used = 0
  /** Pieces that were used since the last `trim`. */
  #needed = 0

  /** Room for this many bytes, at most a piece; `use` takes it. */
  free(bytes: number): Uint8Array {
    if (this.#used + bytes > PIECE_BYTES) {
      this.#at += 1
      this.#used = 0
    }
    const piece = (this.#pieces[this.#at] ??= new Uint8Array(PIECE_BYTES))
    this.#needed = Math.max(this.#needed, this.#at + 1)
    return piece.subarray(this.#used, this.#used + bytes)
  }

  /** The first bytes of what `free` returned are in use. */
  use(bytes: number): void {
    this.#used += bytes
  }

  /** Nothing is in use any more. */
  clear(): void {
    this.#at = 0
    this.#used = 0
  }

  /** After a save: keeps as much memory as it needed. */
  trim(): void {
    this.clear()
    for (const piece of this.#pieces.splice(this.#needed)) freeBytes(piece)
    this.#needed = 0
  }
}
