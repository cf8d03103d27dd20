import { FeedQueue } from './feed-queue.ts'
import { findScrolledOut, isTextFlood } from './scrolled-out.ts'

/** The part of xterm.js that is needed to feed it, in a page or headless. */
export interface FedTerminal {
  readonly rows: number
  readonly buffer: {
    readonly active: {
      readonly baseY: number
      readonly cursorY: number
      getLine(y: number): { translateToString(trimRight: boolean): string } | undefined
    }
  }
  /** Parses asynchronously, in order; calls `done` afterwards. */
  write(bytes: Uint8Array, done: () => void): void
  onLineFeed(listener: () => void): unknown
}

/** How long a flood of text is collected before it is parsed. */
export interface FloodWait {
  /** Schedules a callback. */
  readonly later: (run: () => void) => void
  /** Bytes that are parsed without waiting. */
  readonly enoughBytes: number
}

/** Characters that may end a sequence. */
function isFinal(byte: number): boolean {
  return byte >= 0x40 && byte <= 0x7e
}

/**
 * Feeds a terminal in order, without parsing text that has no visible effect. Bytes that arrive while it parses are collected: in a
 * flood of text most of them would be scrolled out of the screen and the scrollback, so they are skipped. The terminal then shows
 * the same as one that has parsed every byte.
 */
export class TerminalFeed {
  readonly #terminal: FedTerminal
  readonly #keptLines: () => number | undefined
  readonly #wait: FloodWait | undefined
  readonly #queue = new FeedQueue()
  #isBusy = false
  /** The last bytes were a flood of text, which more text is likely to scroll out. */
  #isFlood = false
  /** Text was verified to be drawn and to scroll, and only text has followed; so further text scrolls too. */
  #isScrolling = false
  /** Collecting more before the next parse. */
  #isHeld = false
  #lineFeeds = 0

  /**
   * `keptLines` is the size of the scrollback; undefined when every line must be parsed, for example for a screen reader. With
   * `wait`, a flood is collected first.
   */
  constructor(terminal: FedTerminal, keptLines: () => number | undefined, wait?: FloodWait) {
    this.#terminal = terminal
    this.#keptLines = keptLines
    this.#wait = wait
    terminal.onLineFeed(() => {
      this.#lineFeeds += 1
    })
  }

  /** `done` is called once the bytes are parsed or skipped. */
  write(bytes: Uint8Array, done: () => void): void {
    this.#queue.write(bytes, done)
    const keptLines = this.#keptLines()
    // One more than fit, because the first line may be incomplete.
    if (this.#isScrolling && keptLines !== undefined)
      this.#queue.dropScrolledOut(this.#terminal.rows + keptLines + 1)
    this.#goOn()
  }

  /** Calls back when everything before is parsed, and before anything later is. */
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

  /** Continues until something is being parsed or the queue is empty. */
  #drain(): void {
    while (!this.#isBusy && !this.#queue.isEmpty) {
      this.#isBusy = true
      const run = this.#queue.takeRun()
      if (run === undefined) this.#feedWaiting()
      else {
        // A resize may change what scrolls.
        this.#isScrolling = false
        run()
        this.#isBusy = false
      }
    }
  }

  #feedWaiting(): void {
    const { bytes, isText, reportParsed } = this.#queue.takeBytes()
    this.#isFlood = isTextFlood(bytes)
    // Set before parsing: bytes that arrive meanwhile must not rely on the state before these.
    this.#isScrolling &&= isText
    this.#feed(bytes, reportParsed, () => {
      reportParsed(bytes.byteLength)
      this.#isBusy = false
      this.#goOn()
    })
  }

  /** Writes the next part from the callback of the previous one, because an idle emulator waits before it parses again. */
  #feed(bytes: Uint8Array, reportParsed: (parsedBytes: number) => void, done: () => void): void {
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
      // The sender may continue while the rest is parsed.
      if (this.#isScrolling) reportParsed(bytes.byteLength - text.tail.byteLength)
    })
  }

  /**
   * True when the line was drawn as text and scrolled up by the next one. Inside a sequence it is not drawn, unless one of its
   * letters ended the sequence; inside a title or another string it is consumed; below the scrolling region it does not move.
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
