import {
  closeFd,
  ioctlPointer,
  ioctlValue,
  O_CLOEXEC,
  O_NOCTTY,
  O_NONBLOCK,
  O_RDWR,
  openPtyMaster,
} from './libc.ts'

const TCGETS = 0x5401
const TIOCGPGRP = 0x540f
const TIOCSWINSZ = 0x5414
const TIOCSPTLCK = 0x40045431
const TIOCSIG = 0x40045436
const TIOCGPTPEER = 0x5441

/** The kernel's `struct termios`: four flag words, one byte of line discipline, 19 control characters. */
const TERMIOS_BYTES = 36
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
  setWindowSize(masterFd, cols, rows)
  return { masterFd, slaveFd }
}

/** A further descriptor of the terminal side, without a path lookup; never becomes our controlling terminal. */
export function openSlave(masterFd: number): number {
  return ioctlValue(masterFd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
}

/** Sets the size; the kernel raises SIGWINCH in the foreground group when it differs. */
export function setWindowSize(fd: number, cols: number, rows: number): void {
  ioctlPointer(fd, TIOCSWINSZ, new Uint16Array([rows, cols, 0, 0]))
}

export function readTermios(fd: number): Termios | undefined {
  const raw = new Uint8Array(TERMIOS_BYTES)
  if (ioctlPointer(fd, TCGETS, raw) < 0) return undefined
  const words = new DataView(raw.buffer)
  return {
    inputFlags: words.getUint32(0, true),
    localFlags: words.getUint32(12, true),
    controlCharacters: raw.subarray(CONTROL_CHARACTERS_AT, CONTROL_CHARACTERS_AT + CONTROL_CHARACTERS),
  }
}

/** Process group in the foreground, or 0 when there is none. */
export function foregroundGroup(masterFd: number): number {
  const group = new Int32Array(1)
  return ioctlPointer(masterFd, TIOCGPGRP, group) < 0 ? 0 : (group[0] ?? 0)
}

/** Raises INT, QUIT or TSTP in the foreground group, as its key would. */
export function raiseTerminalSignal(masterFd: number, signal: number): boolean {
  return ioctlValue(masterFd, TIOCSIG, signal) >= 0
}
