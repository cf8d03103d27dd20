import { isatty } from 'node:tty'
import type { Screen } from '@sandwire/client'
import type { OutputStream } from '@sandwire/protocol'
import { fitScreen } from './fit-screen.ts'
import { OutputWriter } from './output-writer.ts'
import { RawTerminal } from './raw-terminal.ts'
import { StatusLine } from './status-line.ts'
import { TerminalModes } from './terminal-modes.ts'
import { readWindowSize } from './window-size.ts'

/** Soft reset, plain colors, home, clear: what a screen is drawn on. */
const FRESH_SCREEN = '\x1b[!p\x1b[0m\x1b[H\x1b[2J'

const encoder = new TextEncoder()

export interface ScreenEvents {
  /** Standard output takes no more; `code` is the errno. */
  stdoutFailed(code: string): void
  /** Something of a full-screen program's was covered: it should paint again. */
  repaintNeeded(): void
}

/** This program's side of the conversation: two descriptors, and maybe a terminal behind them. */
export class LocalScreen implements Disposable {
  /** Talk that comes and goes. */
  readonly line: StatusLine
  readonly #stdout: OutputWriter
  readonly #stderr: OutputWriter
  readonly #modes = new TerminalModes()
  readonly #isTalkative: boolean
  #raw: RawTerminal | undefined
  /** A remote terminal is shown on a local one. */
  #isMirror = false

  constructor(options: { isVerbose: boolean }, events: ScreenEvents) {
    this.#isTalkative = options.isVerbose && isatty(2)
    this.#stdout = new OutputWriter(1, (code) => events.stdoutFailed(code))
    // A lost stderr takes nothing with it: what matters is on stdout.
    this.#stderr = new OutputWriter(2, () => {})
    // Through stdout when that is the same terminal, so that nothing overtakes anything.
    const talk = isatty(1) ? this.#stdout : this.#stderr
    this.line = new StatusLine({
      write: (text) => void talk.write(encoder.encode(text)),
      columns: () => readWindowSize().cols,
      isAlternateScreen: () => this.#modes.isAlternateScreen,
      canDraw: () => this.#isTalkative && this.#modes.isBetweenSequences,
      onRepaintNeeded: () => events.repaintNeeded(),
    })
  }

  /** Begins to mirror a remote terminal: keys go through untouched, if there are keys. */
  startMirroring(): void {
    this.#isMirror = isatty(1)
    if (isatty(0)) this.#raw = new RawTerminal(0)
  }

  get hasKeys(): boolean {
    return this.#raw !== undefined
  }

  /** Resolves when the bytes are out. */
  output(stream: OutputStream, bytes: Uint8Array): Promise<void> {
    this.line.clear()
    if (stream === 'stderr') return this.#stderr.write(bytes)
    if (this.#isMirror) this.#modes.scan(bytes)
    return this.#stdout.write(bytes)
  }

  /** Draws a screen in place of what is there, as much of it as there is room for. */
  draw(screen: Screen): Promise<void> {
    this.line.clear()
    if (!this.#isMirror) return this.#stdout.write(screen.bytes)
    const undo = this.#modes.undo()
    const fitted = fitScreen(screen, readWindowSize())
    this.#modes.scan(fitted)
    void this.#stdout.write(encoder.encode(`${undo}${FRESH_SCREEN}`))
    return this.#stdout.write(fitted)
  }

  /** Stops the remote's hold on the terminal: modes it left on, raw keys. Everything written before is out. */
  async stopMirroring(): Promise<void> {
    this.line.clear()
    if (this.#isMirror) void this.#stdout.write(encoder.encode(this.#modes.undo()))
    this.#isMirror = false
    await Promise.all([this.#stdout.drained(), this.#stderr.drained()])
    this.#raw?.leave()
  }

  /** Lines for the person at the terminal, to stay. */
  async say(...lines: readonly string[]): Promise<void> {
    this.line.clear()
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

  /** The last resort, for when there is no time to wait. */
  [Symbol.dispose](): void {
    this.#raw?.leave()
  }
}
