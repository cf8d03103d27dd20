import { EGRESS_PROXY_HEADER } from '@sandwire/internal-api'
import { findHeadEnd, parseHead, formatHead, withoutHopHeaders } from './message-head.ts'

/** Leaves room for large policies and cookies. */
const MAX_RESPONSE_HEAD_BYTES = 64 * 1024
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9][0-9]{2})( .*)?$/

/** Rewrites the head of a response, to announce that the connection closes after it. */
export class ResponseHead {
  readonly #isUpgrade: boolean
  #held = Buffer.alloc(0)
  #isDone = false
  #isSwitched = false

  /** `isUpgrade`: the request asks for a WebSocket, so that 101 is a final response. */
  constructor({ isUpgrade = false } = {}) {
    this.#isUpgrade = isUpgrade
  }

  /** True when the head of the final response has passed. */
  get isComplete(): boolean {
    return this.#isDone
  }

  /** True when the response was 101: what follows is no HTTP. */
  get isSwitched(): boolean {
    return this.#isSwitched
  }

  /** Bytes to forward; undefined when this is not HTTP. Bytes after the head are unchanged. */
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
    const [, status] = STATUS_LINE.exec(parsed?.startLine ?? '') ?? []
    this.#isSwitched = status === '101'
    if (parsed === undefined || status === undefined || (this.#isSwitched && !this.#isUpgrade))
      return undefined
    const isInterim = status.startsWith('1') && !this.#isSwitched
    this.#isDone = !isInterim
    if (this.#isSwitched) return bytes
    // Only the proxy's own responses have that header.
    const kept = withoutHopHeaders(parsed.headers).filter(
      ([name]) => name.toLowerCase() !== EGRESS_PROXY_HEADER,
    )
    return formatHead({
      startLine: parsed.startLine,
      headers: isInterim ? kept : [...kept, ['Connection', 'close']],
    })
  }
}
