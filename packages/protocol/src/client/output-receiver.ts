import type { OutputStream } from '../data-frame.ts'
import { SandwireError } from '../errors.ts'
import { ACK_BYTES, ACK_DELAY_MS, FLOOD_ACK_BYTES, FLOOD_ACK_MS, MAX_DATA_BYTES } from '../limits.ts'
import type { ServerMessage } from '../server-frames.ts'
import type { EffectBuffer } from './effect-list.ts'

type SnapshotHead = Extract<ServerMessage, { type: 'snapshot' }>

/** A screen that is arriving. */
interface ArrivingSnapshot {
  readonly head: SnapshotHead
  readonly bytes: Uint8Array
  filled: number
}

/** Output as it arrives and is consumed: which byte is next, what may be acknowledged, and when. */
export class OutputReceiver {
  readonly #effects: EffectBuffer
  #received = 0
  #consumed = 0
  /** What the last ack said. */
  #ackSent = 0
  #ackDueMs: number | undefined
  /** Before this an ack of full frames waits for company. */
  #floodUntilMs = Number.NEGATIVE_INFINITY
  /** The last frame was full: the window is at least four of them. */
  #isFlood = false
  /** A cut, a gap or a screen moved the stream: acknowledge at once until everything is consumed. */
  #isAckUrgent = false
  /** Stretches of the stream that have no bytes, ahead of what is consumed. */
  readonly #skips: { from: number; to: number }[] = []
  #snapshot: ArrivingSnapshot | undefined

  constructor(effects: EffectBuffer) {
    this.#effects = effects
  }

  get received(): number {
    return this.#received
  }

  get consumed(): number {
    return this.#consumed
  }

  get isConsumed(): boolean {
    return this.#consumed >= this.#received
  }

  /** When an ack is due that waits for company. */
  get ackDueMs(): number | undefined {
    return this.#ackDueMs
  }

  /** The stream of a new attachment begins at `offset`. */
  beginAt(offset: number): void {
    this.#received = offset
    this.#consumed = offset
    this.#ackSent = offset
  }

  /** The stream goes on with a new connection. Acks may have been lost with the old one, so the state is told anew. */
  continue(): void {
    this.#ackSent = 0
    this.#isAckUrgent = true
    this.#snapshot = undefined
  }

  /** The connection is gone; acks are pointless until the next. */
  stop(): void {
    this.#ackDueMs = undefined
  }

  /** Takes output; an error means the server is broken. */
  data(stream: OutputStream, payload: Uint8Array, nowMs: number): SandwireError | undefined {
    if (this.#snapshot !== undefined) {
      return new SandwireError('bad_frame', 'Cannot take output inside a snapshot')
    }
    this.#received += payload.byteLength
    this.#isFlood = payload.byteLength === MAX_DATA_BYTES
    this.#effects.push({ do: 'output', stream, bytes: payload, end: this.#received })
    this.#ackDueMs ??= nowMs + ACK_DELAY_MS
    return undefined
  }

  gap(from: number, to: number): SandwireError | undefined {
    if (from !== this.#received || to < from) {
      return new SandwireError('desync', `Cannot skip from ${from}: ${this.#received} is next`)
    }
    this.#effects.push({ do: 'gap', from, to })
    this.#skips.push({ from, to })
    this.#received = to
    this.#isAckUrgent = true
    this.#passSkips()
    return undefined
  }

  /** A screen is announced; its bytes follow. Nothing moves before it is complete. */
  snapshotHead(head: SnapshotHead): SandwireError | undefined {
    if (head.at < this.#received || this.#snapshot !== undefined) {
      return new SandwireError('desync', `Cannot draw the screen at ${head.at}: ${this.#received} is next`)
    }
    this.#snapshot = { head, bytes: new Uint8Array(head.bytes), filled: 0 }
    this.#finishSnapshot()
    return undefined
  }

  snapshotData(payload: Uint8Array): SandwireError | undefined {
    const arriving = this.#snapshot
    if (arriving === undefined || arriving.filled + payload.byteLength > arriving.bytes.byteLength) {
      return new SandwireError('bad_frame', 'Cannot take a snapshot that was not announced')
    }
    arriving.bytes.set(payload, arriving.filled)
    arriving.filled += payload.byteLength
    this.#finishSnapshot()
    return undefined
  }

  /** The consumer is done with everything up to `end`. */
  consume(end: number): void {
    this.#consumed = Math.max(this.#consumed, Math.min(end, this.#received))
    this.#passSkips()
  }

  /** The ack that is worth sending now, if any; else one may become due later. */
  considerAck(nowMs: number): number | undefined {
    const unacked = this.#consumed - this.#ackSent
    if (unacked <= 0) return undefined
    const isSoon = this.#isFlood && nowMs < this.#floodUntilMs
    if (this.#isAckUrgent || unacked >= (isSoon ? FLOOD_ACK_BYTES : ACK_BYTES)) {
      this.#floodUntilMs = nowMs + FLOOD_ACK_MS
      return this.takeAck()
    }
    const dueMs = unacked >= ACK_BYTES ? this.#floodUntilMs : nowMs + ACK_DELAY_MS
    this.#ackDueMs = Math.min(this.#ackDueMs ?? dueMs, dueMs)
    return undefined
  }

  /** The ack for everything consumed, if it says something new. */
  takeAck(): number | undefined {
    this.#ackDueMs = undefined
    if (this.#consumed <= this.#ackSent) return undefined
    this.#ackSent = this.#consumed
    if (this.#consumed === this.#received) this.#isAckUrgent = false
    return this.#consumed
  }

  /** A gap counts as consumed once everything before it is. */
  #passSkips(): void {
    let skip = this.#skips[0]
    while (skip !== undefined && skip.from <= this.#consumed) {
      this.#consumed = Math.max(this.#consumed, skip.to)
      this.#skips.shift()
      skip = this.#skips[0]
    }
  }

  #finishSnapshot(): void {
    const arriving = this.#snapshot
    if (arriving === undefined || arriving.filled < arriving.bytes.byteLength) return
    this.#snapshot = undefined
    const { at, cols, rows, exact, parts } = arriving.head
    // The very first thing an attachment gets is where it begins, not a loss.
    if (this.#received > 0 && at > this.#received)
      this.#effects.push({ do: 'gap', from: this.#received, to: at })
    this.#received = at
    this.#isAckUrgent = true
    this.#effects.push({ do: 'snapshot', at, cols, rows, exact, parts, bytes: arriving.bytes })
  }
}
