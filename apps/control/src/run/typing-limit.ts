import { Buckets } from '../http/buckets.ts'

/** Accounts that are counted; more than can share a sandbox. */
const MAX_ACCOUNTS = 128
/** Characters that one account types into all terminals of a run: far more than people type, with room to paste. */
const CHARS = { perSecond: 16 * 1024, burst: 128 * 1024, max: MAX_ACCOUNTS }
/** Complete lines, each of which is a request to the sandbox. */
const LINES = { perSecond: 10, burst: 200, max: MAX_ACCOUNTS }

/** Limits what is typed into the terminals of a run: control reads it itself, and it counts for no budget of requests. */
export class TypingLimit {
  readonly #chars = new Buckets(CHARS)
  readonly #lines = new Buckets(LINES)

  takeChars(account: string, count: number, nowMs: number): boolean {
    return this.#chars.take(account, nowMs, count)
  }

  takeLines(account: string, count: number, nowMs: number): boolean {
    return this.#lines.take(account, nowMs, count)
  }
}
