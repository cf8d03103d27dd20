import { TarBuffer, type TarEntry } from '@sandwire/tar'

/** Bytes after which a batch is sent, at most: large enough to be one of few requests, small enough to be sent again. */
export const BATCH_BYTES = 8 * 1024 * 1024

/** The first one is small, so that the other side has something to do soon. */
const FIRST_BATCH_BYTES = 1024 * 1024

/** Entries that are sent together as one archive. */
export class Batch {
  readonly #archive = new TarBuffer()
  readonly #fullBytes: number
  #contentBytes = 0

  constructor(fullBytes = FIRST_BATCH_BYTES) {
    this.#fullBytes = fullBytes
  }

  /** The one behind it is larger. */
  next(): Batch {
    return new Batch(Math.min(BATCH_BYTES, this.#fullBytes * 2))
  }

  add(entry: TarEntry, content?: Uint8Array): void {
    const { kind } = entry
    if (kind === 'special') return
    this.#archive.entry({ ...entry, kind, sizeBytes: content?.length ?? 0 })
    if (content === undefined) return
    this.#archive.content(content)
    this.#contentBytes += content.length
  }

  get isFull(): boolean {
    return this.#archive.length >= this.#fullBytes
  }

  get isEmpty(): boolean {
    return this.#archive.length === 0
  }

  get contentBytes(): number {
    return this.#contentBytes
  }

  /** A complete archive. */
  pack(): Uint8Array<ArrayBuffer> {
    this.#archive.end()
    return this.#archive.take()
  }
}
