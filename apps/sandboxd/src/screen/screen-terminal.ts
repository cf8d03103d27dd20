import { Unicode11Addon } from '@xterm/addon-unicode11'
import { Terminal } from '@xterm/headless'
import { limits } from '@sandwire/protocol'
import { guardErase, TerminalFeed } from '@sandwire/screen'
import { ScreenModes } from './screen-modes.ts'
import type { RowRange, ScreenText } from './screen-renderer.ts'
import { type DrawnScreen, drawSnapshot } from './screen-snapshot.ts'
import { UnfinishedTail } from './screen-tail.ts'

/** A terminal that parses like the clients' terminals. */
export function openTerminal(cols: number, rows: number): Terminal {
  const terminal = new Terminal({ cols, rows, scrollback: limits.SCROLLBACK_LINES, allowProposedApi: true })
  // The same character widths as in clients; otherwise text after an emoji would shift.
  terminal.loadAddon(new Unicode11Addon())
  terminal.unicode.activeVersion = '11'
  guardErase(terminal)
  return terminal
}

/** How long bulk output may wait for more that scrolls it out of sight; nothing is shown until a screen is requested. */
const BULK_DELAY_MS = 250

/** A headless terminal fed with the output of one session. Calls take effect in order. */
export class Screen implements Disposable {
  readonly #terminal: Terminal
  readonly #feed: TerminalFeed
  readonly #modes: ScreenModes
  readonly #tail = new UnfinishedTail()
  #bulkTimer: Timer | undefined

  constructor(cols: number, rows: number) {
    const terminal = openTerminal(cols, rows)
    this.#terminal = terminal
    this.#feed = new TerminalFeed(terminal, () => limits.SCROLLBACK_LINES, {
      later: (run) => {
        this.#bulkTimer = setTimeout(run, BULK_DELAY_MS)
      },
      enoughBytes: Number.POSITIVE_INFINITY,
    })
    this.#modes = new ScreenModes(terminal)
  }

  /** Calls `done` when the bytes were parsed. */
  feed(bytes: Uint8Array, done: () => void): void {
    this.#feed.write(bytes, () => {
      this.#tail.scan(bytes)
      done()
    })
  }

  resize(cols: number, rows: number): void {
    this.#feed.run(() => this.#terminal.resize(cols, rows))
  }

  /** Produces the bytes that draw the screen, with as much of its scrollback as fits. */
  draw(done: (drawn: DrawnScreen) => void): void {
    this.#feed.run(() => {
      const tail = this.#tail.bytes
      const maxBytes = limits.MAX_SNAPSHOT_BYTES - tail.byteLength
      const drawn =
        drawSnapshot(this.#terminal, this.#modes, { maxBytes, isPlain: false }) ??
        drawSnapshot(this.#terminal, this.#modes, { maxBytes, isPlain: true })
      if (drawn === undefined) done({ bytes: new Uint8Array(0), parts: [] })
      else done({ bytes: Buffer.concat([drawn.bytes, tail]), parts: drawn.parts })
    })
  }

  /** Reads rows as text. */
  read({ from, count }: RowRange, done: (text: ScreenText) => void): void {
    this.#feed.run(() => {
      const { cols, rows, modes, buffer } = this.#terminal
      const { baseY, cursorX, cursorY } = buffer.active
      const first = Math.max(1 - baseY, Math.min(from, rows))
      const last = Math.min(rows, count === undefined ? rows : first + count - 1)
      const lines = Array.from(
        { length: last - first + 1 },
        (_, at) => buffer.active.getLine(baseY + first - 1 + at)?.translateToString(true) ?? '',
      )
      const cursor = { row: cursorY + 1, column: cursorX + 1 }
      const isApplicationCursor = modes.applicationCursorKeysMode
      done({ cols, rows, scrollback: baseY, cursor, isApplicationCursor, from: first, lines })
    })
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#bulkTimer)
    this.#terminal.dispose()
  }
}
