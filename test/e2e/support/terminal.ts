import { closeSync, constants, openSync, readdirSync, readlinkSync, writeSync } from 'node:fs'
import { WAIT_TIMEOUT_MS } from '@sandwire/testing'
import { Terminal as Emulator } from '@xterm/headless'
import { signalName } from './signal-name.ts'

// Local flags of termios on Linux.
const ISIG = 0o1
const ICANON = 0o2
const ECHO = 0o10

/** Newest characters of raw output kept. */
const MAX_OUTPUT_CHARS = 16 * 1024 * 1024

/** Written to the terminal after the program's last byte: an APC string, which no program here sends. */
const END_MARK = '\u001b_sandwire end\u001b\\'

export interface TerminalOptions {
  readonly argv: readonly [string, ...string[]]
  readonly cwd?: string
  /** Added to this process's environment with `TERM=xterm-256color`; `undefined` removes a name. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Default 80. */
  readonly cols?: number
  /** Default 24. */
  readonly rows?: number
}

/** Settings of the terminal device; compare two to see whether a program restored them. */
export interface TerminalModes {
  /** True without line editing, echo and signal keys. */
  readonly isRaw: boolean
  readonly isCanonical: boolean
  readonly hasEcho: boolean
  readonly hasSignals: boolean
  /** The four flag words of termios. */
  readonly flags: {
    readonly input: number
    readonly output: number
    readonly local: number
    readonly control: number
  }
}

export interface TerminalExit {
  /** `null` when a signal ended the program. */
  readonly code: number | null
  readonly signal: string | null
}

function ownTerminalDevices(): string[] {
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      // The descriptor of the listing itself is already closed.
      return ''
    }
  })
  return links.filter((link) => link.startsWith('/dev/pts/'))
}

/** Opens a PTY and finds the path of its program side, which Bun does not expose. */
function openPty(options: ConstructorParameters<typeof Bun.Terminal>[0]) {
  const before = ownTerminalDevices()
  const pty = new Bun.Terminal(options)
  const device = ownTerminalDevices().find((path) => !before.includes(path))
  if (device === undefined) throw new Error('Cannot open a terminal: its device was not found')
  return { pty, device }
}

/** The output so far and how much of it `waitFor` has consumed. */
class Transcript {
  text = ''
  #matchedChars = 0
  readonly #decoder = new TextDecoder()

  push(bytes: Uint8Array): void {
    this.text += this.#decoder.decode(bytes, { stream: true })
    const excess = this.text.length - MAX_OUTPUT_CHARS
    if (excess <= 0) return
    this.text = this.text.slice(excess)
    this.#matchedChars = Math.max(0, this.#matchedChars - excess)
  }

  /** The first match after the previous one. */
  match(pattern: string | RegExp): string | undefined {
    const fresh = this.text.slice(this.#matchedChars)
    const found =
      typeof pattern === 'string' ? { index: fresh.indexOf(pattern), 0: pattern } : pattern.exec(fresh)
    if (found === null || found.index < 0) return undefined
    this.#matchedChars += found.index + found[0].length
    return found[0]
  }
}

/** A program in a real terminal: types keys and reads the screen. */
export class TerminalProgram implements AsyncDisposable {
  readonly pid: number
  /** The program side of the PTY. */
  readonly device: string
  /** Settles when the program exited and all its output was received. */
  readonly exit: Promise<TerminalExit>
  readonly #pty: Bun.Terminal
  readonly #child: Bun.Subprocess
  readonly #emulator: Emulator
  readonly #transcript = new Transcript()
  #hasExited = false
  /** Settles at the next output and at the exit. */
  #changed = Promise.withResolvers<void>()

  constructor({ argv, cwd, env = {}, cols = 80, rows = 24 }: TerminalOptions) {
    this.#emulator = new Emulator({ cols, rows, allowProposedApi: true })
    const { pty, device } = openPty({ cols, rows, data: (_, bytes) => this.#receive(bytes) })
    this.#pty = pty
    this.device = device
    // The emulator answers terminal queries, such as the cursor position.
    this.#emulator.onData((answer) => void (this.#hasExited || pty.write(answer)))
    // Bun gives the child the terminal's descriptors, `setsid -c` makes it the controlling terminal.
    this.#child = Bun.spawn(['setsid', '-c', ...argv], {
      terminal: pty,
      env: { ...process.env, TERM: 'xterm-256color', ...env },
      ...(cwd === undefined ? {} : { cwd }),
    })
    this.pid = this.#child.pid
    this.exit = this.#awaitExit()
  }

  /** Types text; control keys are their characters, such as `\x03` for Ctrl-C. */
  send(text: string): void {
    this.#pty.write(text)
  }

  /** All output as text with its escape sequences; the newest 16 Mi characters. */
  rawOutput(): string {
    return this.#transcript.text.replace(END_MARK, '')
  }

  /** The lines of the screen without trailing blanks and blank lines. */
  async screen(): Promise<string> {
    await new Promise<void>((resolve) => this.#emulator.write('', resolve))
    const buffer = this.#emulator.buffer.active
    const lines = Array.from({ length: this.#emulator.rows }, (_, row) =>
      buffer.getLine(buffer.baseY + row)?.translateToString(true),
    )
    return lines.join('\n').trimEnd()
  }

  /** Waits for raw output after the previous match, like `expect`; returns the match. */
  async waitFor(pattern: string | RegExp, timeoutMs = WAIT_TIMEOUT_MS): Promise<string> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.#wake()
    }, timeoutMs)
    try {
      for (;;) {
        const found = this.#transcript.match(pattern)
        if (found !== undefined) return found
        if (isLate || this.#hasExited)
          throw await this.#missing(pattern, isLate ? `${timeoutMs} ms passed` : 'program ended')
        await this.#changed.promise
      }
    } finally {
      clearTimeout(timer)
    }
  }

  resize(cols: number, rows: number): void {
    this.#pty.resize(cols, rows)
    this.#emulator.resize(cols, rows)
  }

  /** The current settings; still readable after the program exited. */
  modes(): TerminalModes {
    const { inputFlags: input, outputFlags: output, localFlags: local, controlFlags: control } = this.#pty
    return {
      isRaw: (local & (ISIG | ICANON | ECHO)) === 0,
      isCanonical: (local & ICANON) !== 0,
      hasEcho: (local & ECHO) !== 0,
      hasSignals: (local & ISIG) !== 0,
      flags: { input, output, local, control },
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.exit
    this.#pty.close()
    this.#emulator.dispose()
  }

  #receive(bytes: Uint8Array): void {
    this.#transcript.push(bytes)
    this.#emulator.write(new Uint8Array(bytes))
    this.#wake()
  }

  async #awaitExit(): Promise<TerminalExit> {
    await this.#child.exited
    await this.#drain()
    this.#hasExited = true
    this.#wake()
    return { code: this.#child.exitCode, signal: signalName(this.#child.signalCode) }
  }

  /** A PTY reports no end of file when its program exits; a mark after the last byte shows that all was received. */
  async #drain(): Promise<void> {
    const fd = openSync(this.device, constants.O_WRONLY | constants.O_NOCTTY)
    writeSync(fd, END_MARK)
    closeSync(fd)
    while (!this.#transcript.text.includes(END_MARK)) await this.#changed.promise
  }

  #wake(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers<void>()
  }

  async #missing(pattern: string | RegExp, why: string): Promise<Error> {
    return new Error(
      `Cannot find "${String(pattern)}" in the terminal: ${why}; the screen shows:\n${await this.screen()}`,
    )
  }
}

/** Runs a program in a new terminal. */
export function openTerminal(options: TerminalOptions): TerminalProgram {
  return new TerminalProgram(options)
}
