import { dlopen, FFIType } from 'bun:ffi'

/** Names of the C library on supported platforms. */
const LIBC_NAMES = [
  'libc.so.6',
  'libSystem.B.dylib',
  `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`,
]
/** Larger than `struct termios` anywhere. */
const TERMIOS_BYTES = 256
const TCSANOW = 0

const SYMBOLS = {
  tcgetattr: { args: ['i32', 'ptr'], returns: 'i32' },
  tcsetattr: { args: ['i32', 'i32', 'ptr'], returns: 'i32' },
  cfmakeraw: { args: ['ptr'], returns: FFIType.void },
} as const

function openLibc() {
  for (const name of LIBC_NAMES) {
    try {
      return dlopen(name, SYMBOLS).symbols
    } catch {
      // Try the next name.
    }
  }
  return undefined
}

/**
 * Puts a terminal in raw mode until disposed. Unlike `setRawMode`, output processing is off too, because the remote
 * terminal has done it. Disposing twice is harmless.
 */
export class RawTerminal implements Disposable {
  readonly #fd: number
  readonly #libc = openLibc()
  readonly #before = new Uint8Array(TERMIOS_BYTES)
  #isRaw = false

  constructor(fd: number) {
    this.#fd = fd
    this.enter()
  }

  get isRaw(): boolean {
    return this.#isRaw
  }

  enter(): void {
    if (this.#isRaw || this.#libc === undefined || this.#libc.tcgetattr(this.#fd, this.#before) !== 0) return
    const raw = this.#before.slice()
    this.#libc.cfmakeraw(raw)
    this.#isRaw = this.#libc.tcsetattr(this.#fd, TCSANOW, raw) === 0
  }

  /** Restores the terminal. */
  leave(): void {
    if (!this.#isRaw) return
    this.#isRaw = false
    this.#libc?.tcsetattr(this.#fd, TCSANOW, this.#before)
  }

  [Symbol.dispose](): void {
    this.leave()
  }
}
