import {
  closeFd,
  ioctlPointer,
  ioctlValue,
  O_CLOEXEC,
  O_NOCTTY,
  O_NONBLOCK,
  O_RDWR,
  openPtyMaster,
} from '../linux/libc.ts'

const TCGETS = 0x5401
const TCSETS = 0x5402
const TCFLSH = 0x540b
const TCIFLUSH = 0
const TCOFLUSH = 1
const TIOCGPGRP = 0x540f
const TIOCSWINSZ = 0x5414
const TIOCSPTLCK = 0x40045431
const TIOCSIG = 0x40045436
const TIOCGPTPEER = 0x5441

/** The kernel's `struct termios`: four flag words, one byte of line discipline, 19 control characters. */
const TERMIOS_BYTES = 36
const LOCAL_FLAGS_AT = 12
const IUTF8 = 0o40000
const CONTROL_CHARACTERS_AT = 17
const CONTROL_CHARACTERS = 19

/** Flags and control characters of a terminal, as the kernel keeps them. */
export interface Termios {
  readonly inputFlags: number
  readonly localFlags: number
  /** Indexed by the V* constants; 0 means disabled. */
  readonly controlCharacters: Uint8Array
}

export interface PtyDevice {
  /** Non-blocking, closed on exec. */
  readonly masterFd: number
  readonly slaveFd: number
}

/** Opens a terminal of the given size; a negative errno when the system has none left. */
export function openPty(cols: number, rows: number): PtyDevice | number {
  const masterFd = openPtyMaster(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
  if (masterFd < 0) return masterFd
  const locked = ioctlPointer(masterFd, TIOCSPTLCK, new Int32Array([0]))
  const slaveFd = locked < 0 ? locked : openSlave(masterFd)
  if (slaveFd < 0) {
    closeFd(masterFd)
    return slaveFd
  }
  setUtf8(slaveFd)
  setWindowSize(masterFd, cols, rows)
  return { masterFd, slaveFd }
}

/** Makes the kernel erase whole UTF-8 characters. */
function setUtf8(fd: number): void {
  const termios = new Uint32Array(TERMIOS_BYTES / Uint32Array.BYTES_PER_ELEMENT)
  if (ioctlPointer(fd, TCGETS, termios) < 0) return
  termios[0] = (termios[0] ?? 0) | IUTF8
  ioctlPointer(fd, TCSETS, termios)
}

/** Opens the terminal side without a path lookup; it does not become our controlling terminal. */
function openSlave(masterFd: number): number {
  return ioctlValue(masterFd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
}

/** Sets the size; the kernel raises SIGWINCH in the foreground group when it differs. */
export function setWindowSize(fd: number, cols: number, rows: number): void {
  ioctlPointer(fd, TIOCSWINSZ, new Uint16Array([rows, cols, 0, 0]))
}

/** Reads a terminal's modes; returns the same object while they are unchanged. */
export class TermiosReader {
  readonly #fd: number
  readonly #raw = new Uint8Array(TERMIOS_BYTES)
  #lastRaw: Uint8Array | undefined
  #last: Termios | undefined

  constructor(fd: number) {
    this.#fd = fd
  }

  /** Undefined when the terminal is gone. */
  read(): Termios | undefined {
    if (ioctlPointer(this.#fd, TCGETS, this.#raw) < 0) return undefined
    if (this.#lastRaw === undefined || Buffer.compare(this.#raw, this.#lastRaw) !== 0) {
      this.#lastRaw = this.#raw.slice()
      this.#last = parseTermios(this.#lastRaw)
    }
    return this.#last
  }
}

function parseTermios(raw: Uint8Array): Termios {
  const words = new DataView(raw.buffer, raw.byteOffset, raw.byteLength)
  return {
    inputFlags: words.getUint32(0, true),
    localFlags: words.getUint32(LOCAL_FLAGS_AT, true),
    controlCharacters: raw.subarray(CONTROL_CHARACTERS_AT, CONTROL_CHARACTERS_AT + CONTROL_CHARACTERS),
  }
}

/** Process group in the foreground, or 0 when there is none. */
export function foregroundGroup(masterFd: number): number {
  const group = new Int32Array(1)
  return ioctlPointer(masterFd, TIOCGPGRP, group) < 0 ? 0 : (group[0] ?? 0)
}

/** Signals the terminal itself can raise for its foreground group. */
export function isTerminalSignal(name: string): boolean {
  return name === 'SIGINT' || name === 'SIGQUIT' || name === 'SIGTSTP'
}

/** Raises INT, QUIT or TSTP in the foreground group, as its key would. */
export function raiseTerminalSignal(masterFd: number, signal: number): boolean {
  return ioctlValue(masterFd, TIOCSIG, signal) >= 0
}

/** Discards all input the program has not read. */
export function flushInput(masterFd: number): void {
  // First bytes on their way to the line discipline, then those in it.
  ioctlValue(masterFd, TCFLSH, TCOFLUSH)
  const slaveFd = openSlave(masterFd)
  if (slaveFd < 0) return
  ioctlValue(slaveFd, TCFLSH, TCIFLUSH)
  closeFd(slaveFd)
}
