/** Expands one integer to the state words (splitmix32). */
function* expandSeed(seed: number): Generator<number, never> {
  let state = seed >>> 0
  for (;;) {
    state = (state + 0x9e3779b9) >>> 0
    let word = state ^ (state >>> 16)
    word = Math.imul(word, 0x21f0aaad)
    word ^= word >>> 15
    word = Math.imul(word, 0x735a2d97)
    yield (word ^ (word >>> 15)) >>> 0
  }
}

/** Results discarded after seeding, so that adjacent seeds produce different sequences. */
const WARM_UP_ROUNDS = 12

/**
 * A deterministic random generator (sfc32): the same seed produces the same sequence in every runtime.
 * For tests only: not cryptographically secure.
 */
export class Random {
  /** Reproduces the sequence; print it when a test fails. */
  readonly seed: number
  #a: number
  #b: number
  #c: number
  #counter = 1

  /** Takes the low 32 bits of `seed`. */
  constructor(seed: number) {
    this.seed = seed >>> 0
    const words = expandSeed(this.seed)
    this.#a = words.next().value
    this.#b = words.next().value
    this.#c = words.next().value
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.word()
  }

  /** A whole number in [0, 2^32). */
  word(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    this.#c |= 0
    return sum >>> 0
  }

  /** A number in [0, 1). */
  next(): number {
    return this.word() / 0x1_0000_0000
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    if (!(Number.isSafeInteger(low) && Number.isSafeInteger(high) && low <= high)) {
      throw new RangeError(`Cannot draw an integer: range is "${low}..${high}"`)
    }
    return low + Math.floor(this.next() * (high - low + 1))
  }

  /** True with probability `p`. */
  chance(p: number): boolean {
    return this.next() < p
  }

  /** One element of a list that is not empty. */
  pick<T>(list: readonly T[]): T {
    for (const chosen of list.slice(this.int(0, list.length - 1))) return chosen
    throw new RangeError('Cannot pick an element: list is empty')
  }

  /** `length` random bytes in a new array. */
  bytes(length: number): Uint8Array<ArrayBuffer> {
    const result = new Uint8Array(length)
    for (let at = 0; at < length;) {
      let word = this.word()
      for (let left = 4; left > 0 && at < length; left--, word >>>= 8) result[at++] = word
    }
    return result
  }

  /** A new list with the same elements in another order (Fisher-Yates). */
  shuffle<T>(list: readonly T[]): T[] {
    const rest = [...list]
    const result: T[] = []
    while (rest.length > 0) result.push(...rest.splice(this.int(0, rest.length - 1), 1))
    return result
  }

  /** An independent source; how much is drawn from it does not disturb this one. */
  fork(): Random {
    return new Random(this.word())
  }
}
