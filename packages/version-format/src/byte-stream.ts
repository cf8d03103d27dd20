import { SandwireError } from '@sandwire/protocol'

/** The stored bytes are not what the format requires: they were damaged or made by an attacker. */
export function damaged(what: string): SandwireError {
  return new SandwireError('version_damaged', `Cannot read the version: ${what}`)
}

const INITIAL_BYTES = 1024

/** Appends numbers and bytes to a growing buffer. */
export class ByteWriter {
  #buffer = new Uint8Array(INITIAL_BYTES)
  #size = 0

  get size(): number {
    return this.#size
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#buffer[this.#size] = value
    this.#size += 1
  }

  /** A non-negative integer in LEB128: seven bits per byte, the lowest first. */
  number(value: number): void {
    this.#reserve(8)
    let rest = value
    while (rest >= 0x80) {
      this.#buffer[this.#size] = (rest % 0x80) + 0x80
      this.#size += 1
      rest = Math.floor(rest / 0x80)
    }
    this.#buffer[this.#size] = rest
    this.#size += 1
  }

  /** An integer of either sign: its magnitude doubled, plus one when it is negative. */
  signed(value: number): void {
    this.number(value < 0 ? -value * 2 - 1 : value * 2)
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.byteLength)
    this.#buffer.set(bytes, this.#size)
    this.#size += bytes.byteLength
  }

  /** Bytes with their length in front. */
  bytes(bytes: Uint8Array): void {
    this.number(bytes.byteLength)
    this.raw(bytes)
  }

  /** A copy of what was written. */
  take(): Uint8Array<ArrayBuffer> {
    return this.#buffer.slice(0, this.#size)
  }

  #reserve(bytes: number): void {
    const needed = this.#size + bytes
    if (needed <= this.#buffer.byteLength) return
    const grown = new Uint8Array(Math.max(needed, this.#buffer.byteLength * 2))
    grown.set(this.#buffer.subarray(0, this.#size))
    this.#buffer = grown
  }
}

/** Reads what `ByteWriter` wrote; throws `version_damaged` instead of reading beyond the end. */
export class ByteReader {
  readonly #buffer: Uint8Array
  #at = 0

  constructor(buffer: Uint8Array) {
    this.#buffer = buffer
  }

  get position(): number {
    return this.#at
  }

  get isAtEnd(): boolean {
    return this.#at === this.#buffer.byteLength
  }

  byte(): number {
    const value = this.#buffer[this.#at]
    if (value === undefined) throw damaged('it ends too early')
    this.#at += 1
    return value
  }

  number(): number {
    let value = 0
    let unit = 1
    for (;;) {
      const byte = this.byte()
      value += (byte & 0x7f) * unit
      if (value > Number.MAX_SAFE_INTEGER) throw damaged('a number is too large')
      if (byte < 0x80) return value
      unit *= 0x80
    }
  }

  signed(): number {
    const value = this.number()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  /** A count of items that take at least `minBytes` each, so that a false count cannot ask for more memory than there are bytes. */
  count(minBytes: number): number {
    const count = this.number()
    if (count * minBytes > this.#buffer.byteLength - this.#at)
      throw damaged('a count is larger than the content')
    return count
  }

  /** A view of the next bytes. */
  raw(length: number): Uint8Array {
    if (length > this.#buffer.byteLength - this.#at) throw damaged('it ends too early')
    const bytes = this.#buffer.subarray(this.#at, this.#at + length)
    this.#at += length
    return bytes
  }

  bytes(): Uint8Array {
    return this.raw(this.number())
  }
}
