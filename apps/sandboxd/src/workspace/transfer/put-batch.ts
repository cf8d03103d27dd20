import type { Put } from './transfer-files.ts'

/** What is held at most before it is put. */
const HELD_BYTES = 1024 * 1024
const HELD_ITEMS = 256

/** Files up to this size are held until they are put, many at a time. */
export const SMALL_BYTES = 256 * 1024

/** Items that are put together, with the bytes of all of them. */
export class PutBatch {
  readonly #bytes = new Uint8Array(HELD_BYTES + SMALL_BYTES)
  #items: Put[] = []
  #length = 0

  /** Bytes of files so far. */
  get length(): number {
    return this.#length
  }

  /** The next bytes of a small file. */
  append(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Whether it is time to put them. */
  add(item: Put): boolean {
    this.#items.push(item)
    return this.#items.length >= HELD_ITEMS || this.#length >= HELD_BYTES
  }

  /** Everything, and begins anew. */
  take(): { readonly items: readonly Put[]; readonly bytes: Uint8Array } {
    const taken = { items: this.#items, bytes: this.#bytes.slice(0, this.#length) }
    this.#items = []
    this.#length = 0
    return taken
  }
}
