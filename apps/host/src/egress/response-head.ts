import { findHeadEnd, parseHead, formatHead, withoutHopHeaders } from './message-head.ts'

/** Large policies and cookies occur; more than this is no answer. */
const MAX_RESPONSE_HEAD_BYTES = 64 * 1024
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9][0-9]{2})( .*)?$/

/** Rewrites the head of an answer on its way: one request per connection, and the client is told so. */
export class ResponseHead {
  #held = Buffer.alloc(0)
  #isDone = false

  /** Whether the head of the final answer has passed. */
  get isComplete(): boolean {
    return this.#isDone
  }

  /** What to pass on; undefined when this is no HTTP answer. Everything behind the head passes untouched. */
  take(bytes: Buffer): Buffer | undefined {
    if (this.#isDone) return bytes
    const from = this.#held.length
    this.#held = Buffer.concat([this.#held, bytes])
    const out: Buffer[] = []
    for (let end = findHeadEnd(this.#held, from); end !== undefined; end = findHeadEnd(this.#held, 0)) {
      const head = this.#rewrite(this.#held.subarray(0, end))
      if (head === undefined) return undefined
      out.push(head)
      this.#held = this.#held.subarray(end)
      if (!this.#isDone) continue
      out.push(this.#held)
      this.#held = Buffer.alloc(0)
      break
    }
    return this.#held.length > MAX_RESPONSE_HEAD_BYTES ? undefined : Buffer.concat(out)
  }

  #rewrite(bytes: Buffer): Buffer | undefined {
    const parsed = parseHead(bytes, 'allowed')
    const [, status] = STATUS_LINE.exec(parsed?.firstLine ?? '') ?? []
    // Nobody stopRequested to change protocols.
    if (parsed === undefined || status === undefined || status === '101') return undefined
    const isInterim = status.startsWith('1')
    this.#isDone = !isInterim
    const kept = withoutHopHeaders(parsed.headers)
    return formatHead({
      firstLine: parsed.firstLine,
      headers: isInterim ? kept : [...kept, ['Connection', 'close']],
    })
  }
}
