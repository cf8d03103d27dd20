import type { Termios } from './pty-device.ts'

/** Longest unfinished line without its terminator; the kernel drops further bytes silently. */
export const MAX_LINE_BYTES = 4_095

/** Input flags. */
const INLCR = 0o100
const IGNCR = 0o200
const ICRNL = 0o400
const IXON = 0o2000
const PARMRK = 0o10
const IUTF8 = 0o40000
/** Local flags. */
const ISIG = 0o1
const ICANON = 0o2
const ECHO = 0o10
const ECHOE = 0o20
const ECHOK = 0o40
const ECHOKE = 0o4000
const NOFLSH = 0o200
const IEXTEN = 0o100000
/** Indexes of control characters. */
const VINTR = 0
const VQUIT = 1
const VERASE = 2
const VKILL = 3
const VEOF = 4
const VSTART = 8
const VSTOP = 9
const VSUSP = 10
const VEOL = 11
const VREPRINT = 12
const VWERASE = 14
const VLNEXT = 15
const VEOL2 = 16

const LF = 10
const CR = 13

/** What the line discipline does with one byte of canonical input. */
type Effect = 'store' | 'ignore' | 'finish' | 'erase' | 'erase_word' | 'kill' | 'flush' | 'quote'

/** True when the terminal edits lines before the program sees them. */
export function isCanonical(termios: Termios): boolean {
  return (termios.localFlags & ICANON) !== 0
}

/** True when lines are edited but not shown, as programs set it to read a password. */
export function isReadingSecret(termios: Termios): boolean {
  return isCanonical(termios) && (termios.localFlags & ECHO) === 0
}

/** The end-of-file character, or 0 when it is disabled. */
export function endOfFile(termios: Termios): number {
  return termios.controlCharacters[VEOF] ?? 0
}

/**
 * Tracks the line that the kernel is assembling in canonical mode, byte by byte as they are written.
 *
 * It mirrors `n_tty` closely enough that its count is never below the kernel's for typed or pasted input. A program that
 * changes modes between our read of them and the kernel's can make it differ for one line.
 */
export class LineGuard {
  /** Content of the unfinished line, so that erasing a word or a UTF-8 character counts right. */
  readonly #line = new Uint8Array(MAX_LINE_BYTES)
  #length = 0
  #isQuoting = false
  #effects = new EffectTable()

  /** Bytes of the unfinished line. */
  get length(): number {
    return this.#length
  }

  /** Clears the line: the terminal left canonical mode. */
  reset(): void {
    this.#length = 0
    this.#isQuoting = false
  }

  /** How many of `bytes` can be written, from the start, before a line grows too long; changes nothing. */
  countFitting(bytes: Uint8Array, termios: Termios): number {
    // So few bytes cannot overflow the line, whatever they are.
    if (this.#length + 2 * bytes.length <= MAX_LINE_BYTES) return bytes.length
    const trial = this.#copy()
    const tooLongAt = bytes.findIndex((byte) => !trial.#apply(byte, termios))
    return tooLongAt < 0 ? bytes.length : tooLongAt
  }

  /** Records bytes that the terminal accepted. */
  advance(bytes: Uint8Array, termios: Termios): void {
    for (const byte of bytes) this.#apply(byte, termios)
  }

  /** Bytes that erase the whole unfinished line; undefined when no control character does. */
  killSequence(termios: Termios): Uint8Array | undefined {
    const canEraseAll = this.#countFixed(termios) === 0
    const kill = termios.controlCharacters[VKILL] ?? 0
    // After a quoting character the first one would be stored, so a second one follows.
    if (kill !== 0 && (canEraseAll || killsAtOnce(termios)))
      return new Uint8Array(this.#isQuoting ? 2 : 1).fill(kill)
    const erase = termios.controlCharacters[VERASE] ?? 0
    // Two to spare for a quoted one; on an empty line it does nothing.
    return erase === 0 || !canEraseAll ? undefined : new Uint8Array(this.#length + 2).fill(erase)
  }

  /** Bytes from the start of `bytes` that belong to a refused line; `isOver` when its end is among them. */
  countRefused(bytes: Uint8Array, termios: Termios): { count: number; isOver: boolean } {
    const effects = this.#effects.for(termios)
    for (let at = 0; at < bytes.length; at += 1) {
      const effect = effects[bytes[at] ?? 0]
      if (effect === 'finish' || effect === 'kill') return { count: at + 1, isOver: true }
      // An interrupt must still reach the terminal.
      if (effect === 'flush') return { count: at, isOver: true }
    }
    return { count: bytes.length, isOver: false }
  }

  #copy(): LineGuard {
    const copy = new LineGuard()
    copy.#line.set(this.#line.subarray(0, this.#length))
    copy.#length = this.#length
    copy.#isQuoting = this.#isQuoting
    copy.#effects = this.#effects
    return copy
  }

  /** Applies one byte; false when it would not fit, in which case nothing is changed. */
  #apply(byte: number, termios: Termios): boolean {
    const effect = this.#isQuoting ? 'store' : (this.#effects.for(termios)[byte] ?? 'store')
    switch (effect) {
      case 'store':
        return this.#store(byte, termios)
      case 'quote':
        this.#isQuoting = true
        return true
      case 'erase':
        this.#erase(termios)
        return true
      case 'erase_word':
        this.#eraseWord(termios)
        return true
      case 'kill':
        this.#length = killsAtOnce(termios) ? 0 : this.#countFixed(termios)
        return true
      case 'finish':
      case 'flush':
        this.reset()
        return true
      case 'ignore':
        return true
    }
  }

  #store(byte: number, termios: Termios): boolean {
    // PARMRK doubles 0xFF, so that it cannot be taken for a mark.
    const width = byte === 0xff && (termios.inputFlags & PARMRK) !== 0 ? 2 : 1
    if (this.#length + width > MAX_LINE_BYTES) return false
    this.#line.fill(byte, this.#length, this.#length + width)
    this.#length += width
    this.#isQuoting = false
    return true
  }

  #erase(termios: Termios): void {
    this.#length = this.#startOfLast(termios) ?? this.#length
  }

  #eraseWord(termios: Termios): void {
    let hasSeenWord = false
    for (let start = this.#startOfLast(termios); start !== undefined; start = this.#startOfLast(termios)) {
      const isWord = isWordByte(this.#line[start] ?? 0)
      if (hasSeenWord && !isWord) return
      hasSeenWord ||= isWord
      this.#length = start
    }
  }

  /** Where the last character begins; undefined when there is none that can be erased. */
  #startOfLast(termios: Termios): number | undefined {
    if (this.#length <= this.#countFixed(termios)) return undefined
    let start = this.#length - 1
    while (isContinuation(this.#line[start], termios)) start -= 1
    return start
  }

  /** Bytes at the start of the line that cannot be erased: continuation bytes without a first byte. */
  #countFixed(termios: Termios): number {
    let count = 0
    while (count < this.#length && isContinuation(this.#line[count], termios)) count += 1
    return count
  }
}

/** Every byte's effect, computed once per `Termios` object, which callers reuse while modes are unchanged. */
class EffectTable {
  #termios: Termios | undefined
  #effects: readonly Effect[] = []

  for(termios: Termios): readonly Effect[] {
    if (termios !== this.#termios) {
      this.#termios = termios
      this.#effects = Array.from({ length: 256 }, (_, byte) => effectOf(byte, termios))
    }
    return this.#effects
  }
}

function effectOf(byte: number, termios: Termios): Effect {
  const { inputFlags, localFlags, controlCharacters } = termios
  const isKey = (index: number): boolean => byte !== 0 && controlCharacters[index] === byte
  if ((inputFlags & IXON) !== 0 && (isKey(VSTART) || isKey(VSTOP))) return 'ignore'
  if ((localFlags & ISIG) !== 0 && (isKey(VINTR) || isKey(VQUIT) || isKey(VSUSP))) {
    return (localFlags & NOFLSH) === 0 ? 'flush' : 'ignore'
  }
  if (byte === CR && (inputFlags & IGNCR) !== 0) return 'ignore'
  if (byte === CR && (inputFlags & ICRNL) !== 0) return 'finish'
  if (byte === LF) return (inputFlags & INLCR) === 0 ? 'finish' : 'store'
  if (isKey(VERASE)) return 'erase'
  if (isKey(VKILL)) return 'kill'
  if (isKey(VEOF) || isKey(VEOL)) return 'finish'
  return (localFlags & IEXTEN) === 0 ? 'store' : extendedEffectOf(isKey, (localFlags & ECHO) !== 0)
}

function extendedEffectOf(isKey: (index: number) => boolean, isEchoing: boolean): Effect {
  if (isKey(VWERASE)) return 'erase_word'
  if (isKey(VLNEXT)) return 'quote'
  if (isKey(VREPRINT) && isEchoing) return 'ignore'
  return isKey(VEOL2) ? 'finish' : 'store'
}

/** True for a UTF-8 continuation byte, when the terminal is in UTF-8 mode. */
function isContinuation(byte: number | undefined, { inputFlags }: Termios): boolean {
  return byte !== undefined && (inputFlags & IUTF8) !== 0 && (byte & 0xc0) === 0x80
}

/** A terminal that does not echo erasures drops the whole line; others erase it character by character. */
function killsAtOnce({ localFlags }: Termios): boolean {
  const drawing = ECHO | ECHOE | ECHOK | ECHOKE
  return (localFlags & drawing) !== drawing
}

const MULTIPLICATION_SIGN = 0xd7
const DIVISION_SIGN = 0xf7

/** What the kernel counts as part of a word: underscore, and letters and digits of Latin-1. */
function isWordByte(byte: number): boolean {
  if (byte >= 0xc0) return byte !== MULTIPLICATION_SIGN && byte !== DIVISION_SIGN
  return byte < 0x80 && /\w/.test(String.fromCharCode(byte))
}
