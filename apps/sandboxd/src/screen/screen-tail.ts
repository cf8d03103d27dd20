const ESC = 0x1b
const BEL = 0x07
const CANCEL = 0x18
const SUBSTITUTE = 0x1a
/** A longer string is not passed on; whoever reads on must only not take the rest of it for text. */
const MAX_TAIL_BYTES = 65_536
/** As many bytes as a character has that lacks one. */
const MAX_LACKING_BYTES = 3
/** `[`, and the openings of strings: `P`, `X`, `]`, `^`, `_`. */
const BRACKET = 0x5b
const STRING_OPENINGS: ReadonlySet<number> = new Set([0x50, 0x58, 0x5d, 0x5e, 0x5f])

type State = 'ground' | 'character' | 'escape' | 'sequence' | 'string'

/**
 * Keeps the beginning of a sequence, string or character that output broke off in. Whoever starts to read there needs these bytes
 * first; else the end would be text to them.
 */
export class UnfinishedTail {
  #state: State = 'ground'
  /** Bytes that a character still lacks. */
  #lacks = 0
  #tail: number[] = []
  #isTooLong = false

  get bytes(): Uint8Array {
    // A letter in the place of its number makes a string one that nobody knows.
    return Uint8Array.from(this.#isTooLong ? [...this.#tail.slice(0, 2), 0x78] : this.#tail)
  }

  scan(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.#state === 'ground') at = nextOpening(bytes, at)
      this.#step(bytes[at] ?? 0)
    }
  }

  #step(byte: number): void {
    if (byte === ESC) return this.#begin('escape', byte)
    switch (this.#state) {
      case 'ground':
        this.#lacks = lengthOf(byte) - 1
        return this.#lacks > 0 ? this.#begin('character', byte) : undefined
      case 'character':
        if ((byte & 0xc0) !== 0x80) return this.#beginAgain(byte)
        this.#lacks -= 1
        return this.#lacks === 0 ? this.#end() : this.#keep(byte)
      case 'escape':
        if (byte === BRACKET && this.#tail.length === 1) return this.#begin('sequence', ESC, byte)
        if (STRING_OPENINGS.has(byte) && this.#tail.length === 1) return this.#begin('string', ESC, byte)
        return this.#stepSequence(byte, 0x30)
      case 'sequence':
        return this.#stepSequence(byte, 0x40)
      case 'string':
        if (byte === BEL || byte === CANCEL || byte === SUBSTITUTE) return this.#end()
        return this.#keep(byte)
    }
  }

  #stepSequence(byte: number, firstFinal: number): void {
    if (byte === CANCEL || byte === SUBSTITUTE || byte >= 0x80) return this.#beginAgain(byte)
    if (byte >= firstFinal && byte < 0x7f) return this.#end()
    // Controls in the middle of a sequence were obeyed already.
    if (byte >= 0x20) this.#keep(byte)
  }

  #beginAgain(byte: number): void {
    this.#end()
    this.#step(byte)
  }

  #begin(state: State, ...bytes: readonly number[]): void {
    this.#state = state
    this.#tail = [...bytes]
    this.#isTooLong = false
  }

  #keep(byte: number): void {
    if (this.#tail.length < MAX_TAIL_BYTES) this.#tail.push(byte)
    else this.#isTooLong = true
  }

  #end(): void {
    this.#begin('ground')
  }
}

/** Where something may open that stays open: an escape, which ends any character before it, or else the last character. */
function nextOpening(bytes: Uint8Array, from: number): number {
  const escape = bytes.indexOf(ESC, from)
  return escape < 0 ? Math.max(from, bytes.length - MAX_LACKING_BYTES) : escape
}

/** Of a UTF-8 character by its first byte. */
function lengthOf(first: number): number {
  if (first >= 0xf0 && first < 0xf8) return 4
  if (first >= 0xe0) return first < 0xf0 ? 3 : 1
  return first >= 0xc2 ? 2 : 1
}
