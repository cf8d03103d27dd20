import { TokenBucket } from '@sandwire/protocol'

/** Characters that all terminals of a run take together: far more than people type, with room to paste. */
const CHARS_PER_SECOND = 16 * 1024
const CHARS_BURST = 128 * 1024
/** Complete lines, each of which is a request to the sandbox. */
const LINES_PER_SECOND = 10
const LINES_BURST = 200

/** Limits what is typed into the terminals of a run: control reads it itself, and it counts for no budget of requests. */
export class TypingLimit {
  readonly #chars: TokenBucket
  readonly #lines: TokenBucket

  constructor(nowMs: number) {
    this.#chars = new TokenBucket(CHARS_PER_SECOND, CHARS_BURST, nowMs)
    this.#lines = new TokenBucket(LINES_PER_SECOND, LINES_BURST, nowMs)
  }

  takeChars(count: number, nowMs: number): boolean {
    return this.#chars.take(count, nowMs)
  }

  takeLines(count: number, nowMs: number): boolean {
    return this.#lines.take(count, nowMs)
  }
}
