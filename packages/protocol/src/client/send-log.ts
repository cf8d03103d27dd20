import type { ClientMessage } from '../client-frames.ts'
import { MAX_INPUT_FRAME_BYTES } from '../limits.ts'

/** A control message that has no position in the input yet. */
export type UnsequencedControl =
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly type: 'signal'; readonly signal: string }
  | { readonly type: 'eof' }

type Item =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'control'; readonly message: UnsequencedControl }

/** A frame to put on the connection. */
export type Outgoing = Uint8Array | ClientMessage

/** Chunks are joined up to this size, so that a megabyte written byte by byte is not a million items. */
const JOIN_BYTES = 4096

/** Queued control messages before redundant ones are dropped; far more than a user sends while disconnected. */
const MAX_WAITING_CONTROLS = 64

/**
 * Input of one attachment that is queued, or was sent and may have to be sent again. Bytes have offsets from 0, control
 * messages sequence numbers from 1; neither repeats. A control message gets its number when it is first sent, so a signal may
 * overtake bytes that wait for credit.
 */
export class SendLog {
  #queue: Item[] = []
  #queuedBytes = 0
  /** Sent but not acknowledged, oldest first; its first byte is at `#base`. */
  #unacknowledged: Item[] = []
  /** End of the acknowledged input. */
  readonly #base = { at: 0, seq: 0 }
  /** End of the sent input. */
  #sent = { at: 0, seq: 0 }

  /** Bytes that are queued or may have to be sent again. */
  get heldBytes(): number {
    return this.#queuedBytes + (this.#sent.at - this.#base.at)
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0 && this.#unacknowledged.length === 0
  }

  /** Input bytes sent so far, counting none twice. */
  get sentAt(): number {
    return this.#sent.at
  }

  /** Queues bytes. Chunks are not copied unless small and coalesced, so the caller must not change them. */
  write(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return
    addBytes(this.#queue, bytes)
    this.#queuedBytes += bytes.byteLength
  }

  /**
   * Queues a control message after the bytes; a signal goes ahead of queued bytes. When too many are queued, only the last
   * resize and one of each signal are kept.
   */
  queueControl(message: UnsequencedControl): void {
    const controls = this.#queue.filter(isControl)
    if (controls.length >= MAX_WAITING_CONTROLS && !this.#dropRedundant(message)) return
    const item: Item = { kind: 'control', message }
    if (message.type !== 'signal') {
      this.#queue.push(item)
      return
    }
    // After the last queued signal: after a reconnect, sent signals are queued again among bytes.
    const lastSignal = this.#queue.findLastIndex(isSignal)
    this.#queue.splice(lastSignal + 1, 0, item)
  }

  /** Removes queued messages that this one replaces; false when this one is redundant. */
  #dropRedundant(message: UnsequencedControl): boolean {
    if (message.type === 'resize') this.#queue = this.#queue.filter((item) => !isResize(item))
    if (message.type !== 'signal') return true
    return !this.#queue.some((item) => isSignal(item) && item.message.signal === message.signal)
  }

  /** The next frame to send; `limit` is the offset up to which bytes may be sent. */
  next(limit: number): Outgoing | undefined {
    const first = this.#queue[0]
    if (first === undefined) return undefined
    if (first.kind === 'control') {
      this.#queue.shift()
      this.#unacknowledged.push(first)
      this.#sent = { at: this.#sent.at, seq: this.#sent.seq + 1 }
      return { ...first.message, ...this.#sent }
    }
    const room = Math.min(limit - this.#sent.at, MAX_INPUT_FRAME_BYTES)
    if (room <= 0) return undefined
    const bytes = first.bytes.subarray(0, room)
    if (bytes.byteLength === first.bytes.byteLength) this.#queue.shift()
    else this.#queue[0] = { kind: 'bytes', bytes: first.bytes.subarray(room) }
    this.#queuedBytes -= bytes.byteLength
    addBytes(this.#unacknowledged, bytes)
    this.#sent = { at: this.#sent.at + bytes.byteLength, seq: this.#sent.seq }
    return bytes
  }

  /** The server has accepted (`welcome`) or written (`ack`) everything up to this position. False when that was never sent. */
  acknowledge(at: number, seq: number): boolean {
    if (at > this.#sent.at || seq > this.#sent.seq) return false
    let acknowledged = 0
    for (const item of this.#unacknowledged) {
      if (item.kind === 'control') {
        if (this.#base.seq >= seq) break
        this.#base.seq += 1
      } else {
        const part = Math.min(item.bytes.byteLength, at - this.#base.at)
        if (part <= 0) break
        this.#base.at += part
        if (part < item.bytes.byteLength) {
          this.#unacknowledged[acknowledged] = { kind: 'bytes', bytes: item.bytes.subarray(part) }
          break
        }
      }
      acknowledged += 1
    }
    this.#unacknowledged.splice(0, acknowledged)
    return true
  }

  /** Continues on a new connection at what the server has accepted. False when the two sides disagree. */
  rewind(at: number, seq: number): boolean {
    if (!this.acknowledge(at, seq) || this.#base.at !== at || this.#base.seq !== seq) return false
    for (const item of this.#unacknowledged)
      if (item.kind === 'bytes') this.#queuedBytes += item.bytes.byteLength
    this.#queue = [...this.#unacknowledged, ...this.#queue]
    this.#unacknowledged = []
    this.#sent = { ...this.#base }
    return true
  }

  /** Drops everything after the accepted position; returns the number of dropped bytes. */
  discard(at: number, seq: number): number {
    this.rewind(at, seq)
    const dropped = this.#queuedBytes
    this.#queue = []
    this.#queuedBytes = 0
    return dropped
  }

  /** Drops bytes that were never sent, but not control messages; returns the number of dropped bytes. */
  dropQueuedBytes(): number {
    const dropped = this.#queuedBytes
    this.#queue = this.#queue.filter((item) => item.kind === 'control')
    this.#queuedBytes = 0
    return dropped
  }

  /** Drops control messages that were never sent. */
  dropQueuedControls(): void {
    this.#queue = this.#queue.filter((item) => item.kind === 'bytes')
  }
}

type Control<Type extends UnsequencedControl['type']> = Item & {
  readonly message: UnsequencedControl & { readonly type: Type }
}

function isControl(item: Item): item is Control<UnsequencedControl['type']> {
  return item.kind === 'control'
}

function isResize(item: Item): item is Control<'resize'> {
  return isControl(item) && item.message.type === 'resize'
}

function isSignal(item: Item): item is Control<'signal'> {
  return isControl(item) && item.message.type === 'signal'
}

/** Appends bytes, joined with the last chunk when both are small. */
function addBytes(items: Item[], bytes: Uint8Array): void {
  const last = items.at(-1)
  if (last?.kind !== 'bytes' || last.bytes.byteLength + bytes.byteLength > JOIN_BYTES) {
    items.push({ kind: 'bytes', bytes })
    return
  }
  const joined = new Uint8Array(last.bytes.byteLength + bytes.byteLength)
  joined.set(last.bytes)
  joined.set(bytes, last.bytes.byteLength)
  items[items.length - 1] = { kind: 'bytes', bytes: joined }
}
