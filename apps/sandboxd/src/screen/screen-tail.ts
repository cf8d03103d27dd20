const ESC = 0x1b
const BEL = 0x07
const CANCEL = 0x18
const SUBSTITUTE = 0x1a
/** A longer string is replaced by an unknown one, so that its rest is not taken for text. */
const MAX_TAIL_BYTES = 65_536
/** Longest incomplete UTF-8 character. */
const MAX_PARTIAL_CHARACTER_BYTES = 3
/** `[`, and the characters that open strings: `P`, `X`, `]`, `^`, `_`. */
const BRACKET = 0x5b
const STRING_OPENINGS: ReadonlySet<number> = new Set([0x50, 0x58, 0x5d, 0x5e, 0x5f])

type State = 'ground' | 'character' | 'escape' | 'sequence' | 'string'

/**
 * Holds the incomplete escape sequence, string or character at the end of the output. A client that continues from there needs
 * these bytes first, or the rest would appear as text.
 */
export class UnfinishedTail {
  #state: State = 'ground'
  /** Bytes missing from a character. */
  #missing = 0
  #tail: number[] = []
  #isTooLong = false

  get bytes(): Uint8Array {
    // A letter in place of the number makes it a string that terminals ignore.
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
        this.#missing = lengthOf(byte) - 1
        return this.#missing > 0 ? this.#begin('character', byte) : undefined
      case 'character':
        if ((byte & 0xc0) !== 0x80) return this.#restart(byte)
        this.#missing -= 1
        return this.#missing === 0 ? this.#end() : this.#append(byte)
      case 'escape':
        if (byte === BRACKET && this.#tail.length === 1) return this.#begin('sequence', ESC, byte)
        if (STRING_OPENINGS.has(byte) && this.#tail.length === 1) return this.#begin('string', ESC, byte)
        return this.#stepSequence(byte, 0x30)
      case 'sequence':
        return this.#stepSequence(byte, 0x40)
      case 'string':
        if (byte === BEL || byte === CANCEL || byte === SUBSTITUTE) return this.#end()
        return this.#append(byte)
    }
  }

  #stepSequence(byte: number, firstFinal: number): void {
    if (byte === CANCEL || byte === SUBSTITUTE || byte >= 0x80) return this.#restart(byte)
    if (byte >= firstFinal && byte < 0x7f) return this.#end()
    // Control characters inside a sequence have taken effect already.
    if (byte >= 0x20) this.#append(byte)
  }

  #restart(byte: number): void {
    this.#end()
    this.#step(byte)
  }

  #begin(state: State, ...bytes: readonly number[]): void {
    this.#state = state
    this.#tail = [...bytes]
    this.#isTooLong = false
  }

  #append(byte: number): void {
    if (this.#tail.length < MAX_TAIL_BYTES) this.#tail.push(byte)
    else this.#isTooLong = true
  }

  #end(): void {
    this.#begin('ground')
  }
}

/** Where an incomplete item may start: at an escape, which ends any character before it, or else in the last bytes. */
function nextOpening(bytes: Uint8Array, from: number): number {
  const escape = bytes.indexOf(ESC, from)
  return escape < 0 ? Math.max(from, bytes.length - MAX_PARTIAL_CHARACTER_BYTES) : escape
}

/** Length of a UTF-8 character by its first byte. */
function lengthOf(first: number): number {
  if (first >= 0xf0 && first < 0xf8) return 4
  if (first >= 0xe0) return first < 0xf0 ? 3 : 1
  return first >= 0xc2 ? 2 : 1
}
