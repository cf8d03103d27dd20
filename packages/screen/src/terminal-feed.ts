import { FeedQueue } from './feed-queue.ts'
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

/** How a flood of text is let grow before it is fed. */
export interface FloodWait {
  /** Runs something in a moment. */
  readonly later: (run: () => void) => void
  /** As much as does not wait for more. */
  readonly enoughBytes: number
}

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
  readonly #wait: FloodWait | undefined
  readonly #queue = new FeedQueue()
  #isBusy = false
  /** What was fed last was much text, and most of what follows is likely to push it out again. */
  #isFlood = false
  /** Text was seen to be drawn and to scroll, and nothing but text came since: so will all text that follows it. */
  #isScrolling = false
  /** More is let come before what waits is fed. */
  #isHeld = false
  #lineFeeds = 0

  /**
   * `keptLines` are those above the screen; undefined: somebody takes note of each line, so all are parsed. With `wait`, in a
   * flood, more is let come first.
   */
  constructor(terminal: FedTerminal, keptLines: () => number | undefined, wait?: FloodWait) {
    this.#terminal = terminal
    this.#keptLines = keptLines
    this.#wait = wait
    terminal.onLineFeed(() => {
      this.#lineFeeds += 1
    })
  }

  /** `done` is called once they are parsed, or leave no trace. */
  write(bytes: Uint8Array, done: () => void): void {
    this.#queue.write(bytes, done)
    const keptLines = this.#keptLines()
    // One more than fit, as the first line may be cut off.
    if (this.#isScrolling && keptLines !== undefined)
      this.#queue.dropScrolledOut(this.#terminal.rows + keptLines + 1)
    this.#goOn()
  }

  /** Calls back when everything before is parsed, and before anything that comes later is. */
  run(run: () => void): void {
    this.#queue.run(run)
    this.#goOn()
  }

  #goOn(): void {
    if (this.#isBusy || this.#queue.isEmpty) return
    if (!this.#isFlood || this.#wait === undefined || this.#queue.isWorth(this.#wait.enoughBytes))
      this.#drain()
    else this.#hold(this.#wait)
  }

  #hold({ later }: FloodWait): void {
    if (this.#isHeld) return
    this.#isHeld = true
    later(() => {
      this.#isHeld = false
      if (!this.#isBusy) this.#drain()
    })
  }

  /** Goes on until something is being parsed, or nothing waits. */
  #drain(): void {
    while (!this.#isBusy && !this.#queue.isEmpty) {
      this.#isBusy = true
      const run = this.#queue.takeRun()
      if (run === undefined) this.#feedWaiting()
      else {
        // A change of size may change what scrolls.
        this.#isScrolling = false
        run()
        this.#isBusy = false
      }
    }
  }

  #feedWaiting(): void {
    const { bytes, isText, tell } = this.#queue.takeBytes()
    this.#isFlood = isTextFlood(bytes)
    // At once: what comes while it is parsed must not be judged by what was before it.
    this.#isScrolling &&= isText
    this.#feed(bytes, tell, () => {
      tell(bytes.byteLength)
      this.#isBusy = false
      this.#goOn()
    })
  }

  /** Parts follow each other within the terminal's own turn: an emulator that is left alone with nothing rests before it goes on. */
  #feed(bytes: Uint8Array, tell: (dealtWith: number) => void, done: () => void): void {
    const terminal = this.#terminal
    const scrollback = this.#keptLines()
    const text =
      scrollback === undefined ? undefined : findScrolledOut(bytes, { rows: terminal.rows, scrollback })
    if (text === undefined) return terminal.write(bytes, done)
    terminal.write(text.head, () => {
      this.#lineFeeds = 0
    })
    terminal.write(text.probe, () => {
      this.#isScrolling = this.#isDrawn(text.probe)
      if (!this.#isScrolling) terminal.write(text.middle, () => undefined)
      terminal.write(text.tail, done)
      // Whoever sends may send on while the rest is parsed.
      if (this.#isScrolling) tell(bytes.byteLength - text.tail.byteLength)
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
