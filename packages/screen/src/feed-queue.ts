import { concatBytes } from '@sandwire/bytes'
import { countTextLines } from './scrolled-out.ts'

/** Bytes that wait to be parsed. */
interface Piece {
  readonly kind: 'bytes'
  readonly bytes: Uint8Array
  readonly done: () => void
  /** Line ends in it; undefined when it contains more than text. */
  readonly lines: number | undefined
}

type Item = Piece | { readonly kind: 'run'; readonly run: () => void }

/** Bytes to parse together. */
export interface Batch {
  readonly bytes: Uint8Array
  /** Contains only text. */
  readonly isText: boolean
  /** Reports that this many of the bytes are parsed. */
  readonly reportParsed: (bytes: number) => void
}

/** Bytes and callbacks that wait for a terminal, in order. */
export class FeedQueue {
  readonly #items: Item[] = []

  write(bytes: Uint8Array, done: () => void): void {
    this.#items.push({ kind: 'bytes', bytes, done, lines: countTextLines(bytes) })
  }

  run(run: () => void): void {
    this.#items.push({ kind: 'run', run })
  }

  get isEmpty(): boolean {
    return this.#items.length === 0
  }

  /** True when there are this many bytes, or something that must not wait for more. */
  isWorth(bytes: number): boolean {
    let waiting = 0
    for (const item of this.#items) {
      if (item.kind === 'run' || item.lines === undefined) return true
      waiting += item.bytes.byteLength
    }
    return waiting >= bytes
  }

  /** Drops text that will be scrolled out by at least this many lines of text after it. */
  dropScrolledOut(lines: number): void {
    let linesAfter = 0
    let count = 1
    while (this.#linesOf(count) !== undefined) {
      linesAfter += this.#linesOf(count) ?? 0
      count += 1
    }
    while (this.#linesOf(0) !== undefined && linesAfter >= lines) {
      linesAfter -= this.#linesOf(1) ?? 0
      const [dropped] = this.#items.splice(0, 1)
      if (dropped?.kind === 'bytes') dropped.done()
    }
  }

  /** Removes and returns the next callback, if it is first. */
  takeRun(): (() => void) | undefined {
    const [first] = this.#items
    if (first?.kind !== 'run') return undefined
    this.#items.shift()
    return first.run
  }

  /** Removes and returns all bytes up to the next callback. */
  takeBytes(): Batch {
    const end = this.#items.findIndex(({ kind }) => kind === 'run')
    const taken = this.#items.splice(0, end < 0 ? this.#items.length : end)
    const pieces = taken.flatMap((item) => (item.kind === 'bytes' ? [item] : []))
    const [first] = pieces
    return {
      bytes:
        first !== undefined && pieces.length === 1
          ? first.bytes
          : concatBytes(pieces.map(({ bytes }) => bytes)),
      isText: pieces.every(({ lines }) => lines !== undefined),
      reportParsed: reporterOf(pieces),
    }
  }

  #linesOf(index: number): number | undefined {
    const item = this.#items[index]
    return item?.kind === 'bytes' ? item.lines : undefined
  }
}

/** Calls the callbacks of parsed pieces, each once, in order. */
function reporterOf(pieces: readonly Piece[]): (bytes: number) => void {
  let [next, end] = [0, 0]
  return (bytes) => {
    for (let piece = pieces[next]; piece !== undefined; piece = pieces[next]) {
      end += piece.bytes.byteLength
      if (end > bytes) {
        end -= piece.bytes.byteLength
        return
      }
      next += 1
      piece.done()
    }
  }
}
