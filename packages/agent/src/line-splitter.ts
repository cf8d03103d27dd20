/** A line without its line feed; `isCut` when it was longer than the limit, and `text` is its beginning. */
export interface Line {
  readonly text: string
  readonly isCut: boolean
}

/** How much of a line that is too long is kept, to show what it was. */
const KEPT_BYTES = 1024

/** Divides bytes into lines of UTF-8, within a bound on memory. */
export class LineSplitter {
  readonly #maxBytes: number
  #parts: Uint8Array[] = []
  #bytes = 0
  /** The current line was too long; the rest of it is dropped. */
  #isCut = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  push(chunk: Uint8Array): readonly Line[] {
    const lines: Line[] = []
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, at))
      lines.push(this.#take())
      from = at + 1
    }
    this.#add(chunk.subarray(from))
    return lines
  }

  /** The last line, when it has no line feed. */
  end(): readonly Line[] {
    return this.#bytes === 0 && !this.#isCut ? [] : [this.#take()]
  }

  #add(part: Uint8Array): void {
    if (this.#isCut || part.byteLength === 0) return
    if (this.#bytes + part.byteLength > this.#maxBytes) {
      const kept = join([...this.#parts, part.subarray(0, KEPT_BYTES)]).subarray(0, KEPT_BYTES)
      this.#parts = [kept.slice()]
      this.#bytes = kept.byteLength
      this.#isCut = true
      return
    }
    this.#parts.push(part.slice())
    this.#bytes += part.byteLength
  }

  #take(): Line {
    const text = new TextDecoder().decode(join(this.#parts))
    const isCut = this.#isCut
    this.#parts = []
    this.#bytes = 0
    this.#isCut = false
    return { text: text.endsWith('\r') ? text.slice(0, -1) : text, isCut }
  }
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts
  if (parts.length === 1 && first !== undefined) return first
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.byteLength
  }
  return out
}
