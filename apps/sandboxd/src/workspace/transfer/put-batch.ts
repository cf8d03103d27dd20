import type { Put } from './transfer-files.ts'

/** Maximum size of a batch. */
const HELD_BYTES = 1024 * 1024
const HELD_ITEMS = 256

/** Files up to this size are written in batches. */
export const SMALL_BYTES = 256 * 1024

/** Items that are written together, with their bytes in one buffer. */
export class PutBatch {
  readonly #bytes = new Uint8Array(HELD_BYTES + SMALL_BYTES)
  #items: Put[] = []
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Appends bytes of a small file. */
  append(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Adds an item; returns true when the batch is full. */
  add(item: Put): boolean {
    this.#items.push(item)
    return this.#items.length >= HELD_ITEMS || this.#length >= HELD_BYTES
  }

  /** Returns and clears the batch. */
  take(): { readonly items: readonly Put[]; readonly bytes: Uint8Array } {
    const taken = { items: this.#items, bytes: this.#bytes.slice(0, this.#length) }
    this.#items = []
    this.#length = 0
    return taken
  }
}
