import { findScrolledOut, isTextFlood } from './scrolled-out.ts'

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

/** In a flood, as much as is worth a wait. */
const ENOUGH_BYTES = 512 * 1024

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
  readonly #later: ((run: () => void) => void) | undefined
  #isBusy = false
  /** What was fed last was much text, and most of what follows is likely to push it out again. */
  #isFlood = false
  /** More is let come before what waits is fed. */
  #isHeld = false
  #lineFeeds = 0

  /**
   * `keptLines` are those above the screen; undefined: somebody takes note of each line, so all are parsed. `later` runs something
   * in a moment; with it, in a flood, more is let come first.
   */
  constructor(terminal: FedTerminal, keptLines: () => number | undefined, later?: (run: () => void) => void) {
    this.#terminal = terminal
    this.#keptLines = keptLines
    this.#later = later
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
    this.#goOn()
  }

  #goOn(): void {
    if (this.#isBusy || this.#waiting.length === 0) return
    if (!this.#isFlood || this.#hasEnough()) this.#drain()
    else this.#hold()
  }

  #hasEnough(): boolean {
    let bytes = 0
    for (const item of this.#waiting) {
      if (item.kind === 'run') return true
      bytes += item.bytes.byteLength
    }
    return this.#later === undefined || bytes >= ENOUGH_BYTES
  }

  #hold(): void {
    if (this.#isHeld) return
    this.#isHeld = true
    this.#later?.(() => {
      this.#isHeld = false
      if (!this.#isBusy) this.#drain()
    })
  }

  /** Goes on until something is being parsed, or nothing waits. */
  #drain(): void {
    while (!this.#isBusy) {
      const [first] = this.#waiting
      if (first === undefined) return
      this.#isBusy = true
      if (first.kind === 'bytes') this.#feedWaiting()
      else {
        this.#waiting.shift()
        first.run()
        this.#isBusy = false
      }
    }
  }

  #feedWaiting(): void {
    const pieces = [...this.#takeBytes()]
    const bytes = join(pieces.map((piece) => piece.bytes))
    this.#isFlood = isTextFlood(bytes)
    let end = 0
    this.#feed(bytes, (dealtWith) => {
      for (let [piece] = pieces; piece !== undefined; [piece] = pieces) {
        if (end + piece.bytes.byteLength > dealtWith) return
        end += piece.bytes.byteLength
        pieces.shift()
        piece.done()
      }
      this.#isBusy = false
      this.#goOn()
    })
  }

  /** Takes what waits, up to something else than bytes. */
  #takeBytes(): readonly Extract<Item, { kind: 'bytes' }>[] {
    const end = this.#waiting.findIndex(({ kind }) => kind !== 'bytes')
    const taken = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end)
    return taken.flatMap((item) => (item.kind === 'bytes' ? [item] : []))
  }

  /** Parts follow each other within the terminal's own turn: an emulator that is left alone with nothing rests before it goes on. */
  #feed(bytes: Uint8Array, tell: (dealtWith: number) => void): void {
    const terminal = this.#terminal
    const scrollback = this.#keptLines()
    const text =
      scrollback === undefined ? undefined : findScrolledOut(bytes, { rows: terminal.rows, scrollback })
    const done = (): void => tell(bytes.byteLength)
    if (text === undefined) {
      terminal.write(bytes, done)
      return
    }
    terminal.write(text.head, () => {
      this.#lineFeeds = 0
    })
    terminal.write(text.probe, () => {
      const isDrawn = this.#isDrawn(text.probe)
      if (!isDrawn) terminal.write(text.middle, () => undefined)
      terminal.write(text.tail, done)
      // Whoever sends may send on while the rest is parsed.
      if (isDrawn) tell(bytes.byteLength - text.tail.byteLength)
    })
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
