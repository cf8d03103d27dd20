import type { AttachHandle } from '@sandwire/client'
import type { RunOptions } from '../options/arguments.ts'
import { isLarger } from './fit-screen.ts'
import { FLASH_MS } from './link-watch.ts'
import type { LocalScreen } from './local-screen.ts'
import { printable } from '../text/printable.ts'
import { readWindowSize } from './window-size.ts'

/** Tells whoever sits here what happens to a session besides its output. */
export class Remarks {
  readonly #screen: LocalScreen
  readonly #options: Pick<RunOptions, 'isQuiet' | 'escape'>
  readonly #role: () => AttachHandle['role']
  #isRefusalTold = false

  constructor(
    screen: LocalScreen,
    options: Pick<RunOptions, 'isQuiet' | 'escape'>,
    role: () => AttachHandle['role'],
  ) {
    this.#screen = screen
    this.#options = options
    this.#role = role
  }

  say(text: string): void {
    if (this.#screen.hasKeys) this.flash(text)
    else if (!this.#options.isQuiet) void this.#screen.say(`sbx-stdio: ${printable(text)}`)
  }

  /** For a terminal alone, where it goes away again. */
  flash(text: string): void {
    if (this.#screen.hasKeys) this.#screen.line.flash(`sbx-stdio: ${printable(text)}`, FLASH_MS)
  }

  lost(bytes: number): void {
    this.say(`${bytes} bytes of output are lost: nobody read them in time`)
  }

  /** Somebody else's window may be larger than this one. */
  resized(cols: number, rows: number): void {
    const own = readWindowSize()
    if (this.#role() === 'driver' || !isLarger({ cols, rows }, own)) return
    if (this.#screen.hasKeys)
      this.say(`the session is ${cols}x${rows}, this terminal ${own.cols}x${own.rows}`)
  }

  /** What is typed goes nowhere; said once. */
  refused(): void {
    if (this.#isRefusalTold) return
    this.#isRefusalTold = true
    this.say(`read-only, you are watching (${this.wayOut()})`)
  }

  wayOut(): string {
    if (!this.#screen.hasKeys) return 'Ctrl+C twice leaves'
    const key = this.#options.escape?.label ?? (this.#role() === 'viewer' ? 'Ctrl+C' : 'SIGTERM')
    return `${key} leaves`
  }
}
