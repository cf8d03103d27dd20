/** Cuts a stream of bytes at every NUL, however it is sliced. */
export class NulTokens {
  #chunk: Uint8Array = new Uint8Array()
  #at = 0
  /** Beginning of the token that is not over yet. */
  #begun: Uint8Array[] = []

  /** Adds bytes; those of the last time must have been taken. */
  push(chunk: Uint8Array): void {
    this.#chunk = chunk
    this.#at = 0
  }

  /** The next token without its NUL; undefined when more bytes are needed. */
  next(): Uint8Array | undefined {
    const end = this.#chunk.indexOf(0, this.#at)
    if (end >= 0) return this.#take(end, end + 1)
    this.#begun.push(new Uint8Array(this.#chunk.subarray(this.#at)))
    this.#at = this.#chunk.length
    return undefined
  }

  /** All bytes that were not cut off yet. */
  rest(): Uint8Array {
    return this.#take(this.#chunk.length, this.#chunk.length)
  }

  #take(end: number, next: number): Uint8Array {
    const token = Buffer.concat([...this.#begun, this.#chunk.subarray(this.#at, end)])
    this.#begun = []
    this.#at = next
    return token
  }
}
