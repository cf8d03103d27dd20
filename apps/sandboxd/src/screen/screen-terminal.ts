import { Unicode11Addon } from '@xterm/addon-unicode11'
import { Terminal } from '@xterm/headless'
import { limits } from '@sandwire/protocol'
import { guardErase, TerminalFeed } from '@sandwire/screen'
import { ScreenModes } from './screen-modes.ts'
import { drawSnapshot } from './screen-snapshot.ts'
import { UnfinishedTail } from './screen-tail.ts'

/** Parses as the terminals do that a screen is drawn in. */
export function openTerminal(cols: number, rows: number): Terminal {
  const terminal = new Terminal({ cols, rows, scrollback: limits.SCROLLBACK_LINES, allowProposedApi: true })
  // Characters are as wide here as in those; else what stands behind an emoji would move.
  terminal.loadAddon(new Unicode11Addon())
  terminal.unicode.activeVersion = '11'
  guardErase(terminal)
  return terminal
}

/** How long the end of a flood may wait to be pushed out by what follows: nobody looks until a screen is asked for. */
const FLOOD_WAIT_MS = 250

/** A terminal without a face, fed with the output of one session. Everything happens in the order of the calls. */
export class Screen implements Disposable {
  readonly #terminal: Terminal
  readonly #feed: TerminalFeed
  readonly #modes: ScreenModes
  readonly #tail = new UnfinishedTail()
  #floodTimer: Timer | undefined

  constructor(cols: number, rows: number) {
    const terminal = openTerminal(cols, rows)
    this.#terminal = terminal
    this.#feed = new TerminalFeed(terminal, () => limits.SCROLLBACK_LINES, {
      later: (run) => {
        this.#floodTimer = setTimeout(run, FLOOD_WAIT_MS)
      },
      enoughBytes: Number.POSITIVE_INFINITY,
    })
    this.#modes = new ScreenModes(terminal)
  }

  /** `done` comes when the bytes were parsed. */
  feed(bytes: Uint8Array, done: () => void): void {
    this.#feed.write(bytes, () => {
      this.#tail.scan(bytes)
      done()
    })
  }

  resize(cols: number, rows: number): void {
    this.#feed.run(() => this.#terminal.resize(cols, rows))
  }

  /** Gives the bytes that draw the screen, with as much of its scrollback as fits. */
  draw(done: (bytes: Uint8Array) => void): void {
    this.#feed.run(() => {
      const tail = this.#tail.bytes
      const maxBytes = limits.MAX_SNAPSHOT_BYTES - tail.byteLength
      const drawn =
        drawSnapshot(this.#terminal, this.#modes, { maxBytes, isPlain: false }) ??
        drawSnapshot(this.#terminal, this.#modes, { maxBytes, isPlain: true })
      done(drawn === undefined ? new Uint8Array(0) : Buffer.concat([drawn, tail]))
    })
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#floodTimer)
    this.#terminal.dispose()
  }
}
