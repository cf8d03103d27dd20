import { findScrolledOut } from './scrolled-out.ts'

/** As much of a terminal emulator as is needed to feed it: xterm.js has it, in a page and without one. */
export interface FedTerminal {
  readonly rows: number
  readonly buffer: {
    readonly active: {
      readonly baseY: number
      readonly cursorY: number
      getLine(y: number): { translateToString(trimRight: boolean): string } | undefined
    }
  }
  /** Parses later, in order; `done` says when. */
  write(bytes: Uint8Array, done: () => void): void
  onLineFeed(listener: () => void): unknown
}

type Item =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly done: () => void }
  | { readonly kind: 'run'; readonly run: () => void }

/** What may end a sequence. */
function isFinal(byte: number): boolean {
  return byte >= 0x40 && byte <= 0x7e
}

/**
 * Feeds a terminal in order, without parsing what leaves no trace. What comes while it parses waits, and goes in together: in a
 * flood of text most of that is pushed out of the screen and of what is kept above it by the rest, so it is left out. The terminal
 * then shows the same as one that has parsed every byte.
 */
export class TerminalFeed {
  readonly #terminal: FedTerminal
  readonly #keptLines: () => number | undefined
  readonly #waiting: Item[] = []
  #isBusy = false
  #lineFeeds = 0

  /** `keptLines` are those above the screen; undefined: somebody takes note of each line, so all are parsed. */
  constructor(terminal: FedTerminal, keptLines: () => number | undefined) {
    this.#terminal = terminal
    this.#keptLines = keptLines
    terminal.onLineFeed(() => {
      this.#lineFeeds += 1
    })
  }

  /** `done` is called once they are parsed, or leave no trace. */
  write(bytes: Uint8Array, done: () => void): void {
    this.#push({ kind: 'bytes', bytes, done })
  }

  /** Calls back when everything before is parsed, and before anything that comes later is. */
  run(run: () => void): void {
    this.#push({ kind: 'run', run })
  }

  #push(item: Item): void {
    this.#waiting.push(item)
    if (!this.#isBusy) void this.#drain()
  }

  async #drain(): Promise<void> {
    this.#isBusy = true
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (first.kind === 'run') {
        this.#waiting.shift()
        first.run()
        continue
      }
      const pieces = this.#takeBytes()
      await this.#feed(join(pieces.map(({ bytes }) => bytes)))
      for (const { done } of pieces) done()
    }
    this.#isBusy = false
  }

  /** Takes what waits, up to something else than bytes. */
  #takeBytes(): readonly Extract<Item, { kind: 'bytes' }>[] {
    const end = this.#waiting.findIndex(({ kind }) => kind !== 'bytes')
    const taken = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end)
    return taken.flatMap((item) => (item.kind === 'bytes' ? [item] : []))
  }

  async #feed(bytes: Uint8Array): Promise<void> {
    const scrollback = this.#keptLines()
    const text =
      scrollback === undefined ? undefined : findScrolledOut(bytes, { rows: this.#terminal.rows, scrollback })
    if (text === undefined) return this.#parse(bytes)
    await this.#parse(text.head)
    this.#lineFeeds = 0
    await this.#parse(text.probe)
    if (!this.#isDrawn(text.probe)) await this.#parse(text.middle)
    await this.#parse(text.tail)
  }

  /**
   * Whether a line went the way of all lines: drawn as text, and up by the one below it. Inside of a sequence it would not be drawn,
   * unless a letter of it has ended the sequence; inside of a title or the like it would not end; below what scrolls it would stay.
   */
  #isDrawn(line: Uint8Array): boolean {
    if (this.#lineFeeds === 0 || this.#readRow(0) !== '') return false
    return line.some(isFinal) || this.#readRow(-1) === new TextDecoder().decode(line).trim()
  }

  /** Text of a row, counted from that of the cursor. */
  #readRow(y: number): string | undefined {
    const { active } = this.#terminal.buffer
    return active.getLine(active.baseY + active.cursorY + y)?.translateToString(true)
  }

  #parse(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => this.#terminal.write(bytes, resolve))
  }
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces
  if (pieces.length === 1 && first !== undefined) return first
  const joined = new Uint8Array(pieces.reduce((sum, { byteLength }) => sum + byteLength, 0))
  let at = 0
  for (const piece of pieces) {
    joined.set(piece, at)
    at += piece.byteLength
  }
  return joined
}
