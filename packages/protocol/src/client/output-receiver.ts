import type { OutputStream } from '../data-frame.ts'
import { SandwireError } from '../errors.ts'
import { ACK_BYTES, ACK_DELAY_MS, FLOOD_ACK_BYTES, FLOOD_ACK_MS, MAX_DATA_BYTES } from '../limits.ts'
import type { ServerMessage } from '../server-frames.ts'
import type { EffectBuffer } from './effect-buffer.ts'

type SnapshotHead = Extract<ServerMessage, { type: 'snapshot' }>

/** A snapshot that is being received. */
interface IncomingSnapshot {
  readonly head: SnapshotHead
  readonly bytes: Uint8Array
  filled: number
}

/** Tracks received and consumed output, and decides when to acknowledge it. */
export class OutputReceiver {
  readonly #effects: EffectBuffer
  #received = 0
  #consumed = 0
  /** Offset in the last ack. */
  #ackSent = 0
  #ackDueMs: number | undefined
  /** Until then acks of full frames are delayed to combine them. */
  #floodUntilMs = Number.NEGATIVE_INFINITY
  /** The last frame was full, so the window holds at least four of them. */
  #isFlood = false
  /** A reconnect, gap or snapshot moved the stream: acknowledge at once until everything is consumed. */
  #isAckUrgent = false
  /** Gaps in the stream that are not consumed yet. */
  readonly #skips: { from: number; to: number }[] = []
  #snapshot: IncomingSnapshot | undefined

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

  /** When a delayed ack is due. */
  get ackDueMs(): number | undefined {
    return this.#ackDueMs
  }

  /** The stream of a new attachment begins at `offset`. */
  beginAt(offset: number): void {
    this.#received = offset
    this.#consumed = offset
    this.#ackSent = offset
  }

  /** The stream continues on a new connection. Acks may have been lost with the old one, so the offset is sent again. */
  continue(): void {
    this.#ackSent = 0
    this.#isAckUrgent = true
    this.#snapshot = undefined
  }

  /** The connection was lost; no acks until the next one. */
  stop(): void {
    this.#ackDueMs = undefined
  }

  /** Receives output; an error means the server is broken. */
  data(stream: OutputStream, payload: Uint8Array, nowMs: number): SandwireError | undefined {
    if (this.#snapshot !== undefined) {
      return new SandwireError('bad_frame', 'Cannot accept output inside a snapshot')
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

  /** A snapshot is announced; its bytes follow. The offset changes when it is complete. */
  snapshotHead(head: SnapshotHead): SandwireError | undefined {
    if (head.at < this.#received || this.#snapshot !== undefined) {
      return new SandwireError('desync', `Cannot draw the screen at ${head.at}: ${this.#received} is next`)
    }
    this.#snapshot = { head, bytes: new Uint8Array(head.bytes), filled: 0 }
    this.#finishSnapshot()
    return undefined
  }

  snapshotData(payload: Uint8Array): SandwireError | undefined {
    const incoming = this.#snapshot
    if (incoming === undefined || incoming.filled + payload.byteLength > incoming.bytes.byteLength) {
      return new SandwireError('bad_frame', 'Cannot accept a snapshot that was not announced')
    }
    incoming.bytes.set(payload, incoming.filled)
    incoming.filled += payload.byteLength
    this.#finishSnapshot()
    return undefined
  }

  /** The consumer has consumed all output up to `end`. */
  consume(end: number): void {
    this.#consumed = Math.max(this.#consumed, Math.min(end, this.#received))
    this.#passSkips()
  }

  /** The ack to send now, if any; otherwise one may become due later. */
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

  /** The ack for everything consumed, unless it was sent before. */
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
    const incoming = this.#snapshot
    if (incoming === undefined || incoming.filled < incoming.bytes.byteLength) return
    this.#snapshot = undefined
    const { at, cols, rows, exact, parts } = incoming.head
    // The first snapshot of an attachment is its start, not a gap.
    if (this.#received > 0 && at > this.#received)
      this.#effects.push({ do: 'gap', from: this.#received, to: at })
    this.#received = at
    this.#isAckUrgent = true
    this.#effects.push({ do: 'snapshot', at, cols, rows, exact, parts, bytes: incoming.bytes })
  }
}
