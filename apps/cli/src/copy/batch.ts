import { tar } from '@sandwire/protocol'

/** Bytes after which a batch is sent: large enough to be one of few requests, small enough to be sent again. */
export const BATCH_BYTES = 8 * 1024 * 1024

/** Entries that are sent together as one archive. */
export class Batch {
  readonly #parts: Uint8Array[] = []
  #archiveBytes = 0
  #contentBytes = 0
  #entries = 0

  add(entry: tar.TarEntry, content: Uint8Array = new Uint8Array(0)): void {
    if (entry.kind === 'special') return
    const head = tar.writeEntry({ ...entry, kind: entry.kind, sizeBytes: content.length })
    const padding = new Uint8Array(tar.paddingOf(content.length))
    this.#parts.push(head, content, padding)
    this.#archiveBytes += head.length + content.length + padding.length
    this.#contentBytes += content.length
    this.#entries += 1
  }

  get isFull(): boolean {
    return this.#archiveBytes >= BATCH_BYTES
  }

  get isEmpty(): boolean {
    return this.#entries === 0
  }

  get contentBytes(): number {
    return this.#contentBytes
  }

  /** A complete archive. */
  pack(): Uint8Array<ArrayBuffer> {
    const archive = new Uint8Array(this.#archiveBytes + tar.TAR_END.length)
    let at = 0
    for (const part of this.#parts) {
      archive.set(part, at)
      at += part.length
    }
    return archive
  }
}
