import { isatty } from 'node:tty'
import type { Screen } from '@sandwire/client'
import type { OutputStream } from '@sandwire/protocol'
import { fitScreen } from './fit-screen.ts'
import { OutputWriter } from './output-writer.ts'
import { RawTerminal } from './raw-terminal.ts'
import { StatusLine } from './status-line.ts'
import { TerminalModes } from './terminal-modes.ts'
import { readTerminalSize } from './terminal-size.ts'

/** Soft reset, default colors, home, clear. */
const FRESH_SCREEN = '\x1b[!p\x1b[0m\x1b[H\x1b[2J'

const encoder = new TextEncoder()

export interface ScreenEvents {
  /** stdout cannot be written. */
  stdoutFailed(errno: string): void
  /** The status line covered a row of a full-screen program. */
  repaintNeeded(): void
}

/** stdout and stderr of this program, and the terminal behind them, if any. */
export class LocalScreen implements Disposable {
  readonly statusLine: StatusLine
  readonly #stdout: OutputWriter
  readonly #stderr: OutputWriter
  readonly #modes = new TerminalModes()
  readonly #showsStatus: boolean
  #raw: RawTerminal | undefined
  /** True while a remote terminal is shown on a local one. */
  #isMirroring = false

  constructor(options: { isVerbose: boolean }, events: ScreenEvents) {
    this.#showsStatus = options.isVerbose && isatty(2)
    this.#stdout = new OutputWriter(1, (errno) => events.stdoutFailed(errno))
    // Errors on stderr are ignored.
    this.#stderr = new OutputWriter(2, () => {})
    // Through stdout if that is a terminal, to keep the order of writes.
    const statusOutput = isatty(1) ? this.#stdout : this.#stderr
    this.statusLine = new StatusLine({
      write: (text) => void statusOutput.write(encoder.encode(text)),
      columns: () => readTerminalSize().cols,
      isAlternateScreen: () => this.#modes.isAlternateScreen,
      canDraw: () => this.#showsStatus && this.#modes.isBetweenSequences,
      onRepaintNeeded: () => events.repaintNeeded(),
    })
  }

  /** Shows the remote terminal here, with stdin in raw mode if it is a terminal. */
  startMirroring(): void {
    this.#isMirroring = isatty(1)
    if (isatty(0)) this.#raw = new RawTerminal(0)
  }

  get hasRawInput(): boolean {
    return this.#raw !== undefined
  }

  /** Resolves when the bytes have been written. */
  output(stream: OutputStream, bytes: Uint8Array): Promise<void> {
    this.statusLine.clear()
    if (stream === 'stderr') return this.#stderr.write(bytes)
    if (this.#isMirroring) this.#modes.scan(bytes)
    return this.#stdout.write(bytes)
  }

  /** Draws a screen, fitted to the window. */
  draw(screen: Screen): Promise<void> {
    this.statusLine.clear()
    if (!this.#isMirroring) return this.#stdout.write(screen.bytes)
    const undo = this.#modes.undo()
    const fitted = fitScreen(screen, readTerminalSize())
    this.#modes.scan(fitted)
    void this.#stdout.write(encoder.encode(`${undo}${FRESH_SCREEN}`))
    return this.#stdout.write(fitted)
  }

  /** Resets terminal modes and leaves raw mode, after all output is written. */
  async stopMirroring(): Promise<void> {
    this.statusLine.clear()
    if (this.#isMirroring) void this.#stdout.write(encoder.encode(this.#modes.undo()))
    this.#isMirroring = false
    await Promise.all([this.#stdout.drained(), this.#stderr.drained()])
    this.#raw?.leave()
  }

  /** Prints lines to stderr. */
  async print(...lines: readonly string[]): Promise<void> {
    this.statusLine.clear()
    if (lines.length === 0) return
    await this.#stderr.write(
      encoder.encode(lines.map((line) => `${line}${this.#raw?.isRaw === true ? '\r' : ''}\n`).join('')),
    )
  }

  suspend(): void {
    this.#raw?.leave()
  }

  resume(): void {
    this.#raw?.enter()
  }

  /** Leaves raw mode at once. */
  [Symbol.dispose](): void {
    this.#raw?.leave()
  }
}
