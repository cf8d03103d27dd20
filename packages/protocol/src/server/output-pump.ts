import { packData } from '../data-frame.ts'
import { MAX_DATA_BYTES } from '../limits.ts'
import type { OutputLog } from '../output-log.ts'
import type { ResizeLog } from '../resize-log.ts'
import { type Attachment, knowsNoWindow } from './attachment.ts'
import type { Refusal } from './effects.ts'
import type { EffectBuffer } from './effect-buffer.ts'

/** A screen rendered at an exact offset. */
export interface Snapshot {
  readonly at: number
  readonly cols: number
  readonly rows: number
  readonly data: Uint8Array
  readonly exact: boolean
}

/** Hands output to attachments, each from its own cursor and within its own window. */
export class OutputPump {
  readonly #log: OutputLog
  readonly #resizes: ResizeLog
  readonly #effects: EffectBuffer
  readonly #isPty: boolean
  readonly #turnBytes: number
  /** Bytes that may still be sent in this turn, and when the turn began. */
  #turnLeft: number
  #turnMs = Number.NEGATIVE_INFINITY
  #isTurnRequested = false

  constructor(deps: {
    log: OutputLog
    resizes: ResizeLog
    effects: EffectBuffer
    isPty: boolean
    turnBytes: number
  }) {
    this.#log = deps.log
    this.#resizes = deps.resizes
    this.#effects = deps.effects
    this.#isPty = deps.isPty
    this.#turnBytes = deps.turnBytes
    this.#turnLeft = deps.turnBytes
  }

  /** A new turn of the event loop began. */
  turn(): void {
    this.#turnLeft = this.#turnBytes
    this.#isTurnRequested = false
  }

  /** Sends what the attachment may get now. */
  pump(attachment: Attachment, nowMs: number): void {
    // A turn is rarely shorter; where the clock is finer, calls of one turn have different times.
    if (nowMs >= this.#turnMs + 1) {
      this.#turnMs = nowMs
      this.#turnLeft = this.#turnBytes
    }
    attachment.isThrottled = false
    // What is not sent to a full connection stays in the log, so it costs nothing however long that lasts.
    if (attachment.state.is !== 'attached' || attachment.awaitsSnapshot || attachment.isBlocked) return
    const { connectionId } = attachment.state
    this.#skipTrimmed(attachment)
    while (!attachment.awaitsSnapshot) {
      const room = this.#room(attachment, nowMs)
      this.#sendResizes(attachment)
      const resize = this.#resizes.after(attachment.resizeSerial)
      const untilResize = resize === undefined ? room : Math.min(room, resize.at - attachment.sent)
      const slice = this.#log.read(attachment.sent, Math.min(untilResize, frameBytes(attachment)))
      if (slice === undefined) return
      const { stream, bytes, end } = slice
      attachment.bandwidth?.take(bytes.byteLength, nowMs)
      this.#turnLeft -= bytes.byteLength
      attachment.sent = end
      attachment.sentMax = Math.max(attachment.sentMax, end)
      if (attachment.acked + bytes.byteLength === end) attachment.ackProgressMs = nowMs
      attachment.window.sent(end, nowMs)
      this.#effects.push({ do: 'sendOutput', connectionId, stream, bytes })
    }
  }

  /** The client has consumed up to `offset`. A refusal ends its connection. */
  acked(attachment: Attachment, offset: number, isPaused: boolean, nowMs: number): Refusal | undefined {
    if (offset > attachment.sent) {
      return { code: 'desync', message: `Cannot acknowledge ${offset}: only ${attachment.sent} was sent` }
    }
    if (offset <= attachment.acked) return undefined
    const isLimited = attachment.sent - attachment.acked >= attachment.window.sizeBytes || isPaused
    const ackedBytes = offset - attachment.acked
    attachment.acked = offset
    attachment.ackProgressMs = nowMs
    attachment.isStalled = false
    attachment.window.acked(offset, ackedBytes, nowMs, isLimited)
    return undefined
  }

  /** Asks for a rendered screen; output waits for it. */
  requestSnapshot(attachment: Attachment): void {
    attachment.awaitsSnapshot = true
    this.#effects.push({ do: 'snapshot', attachment: attachment.id })
  }

  /** Sends a rendered screen and continues behind it. */
  sendSnapshot(attachment: Attachment, snapshot: Snapshot): void {
    attachment.awaitsSnapshot = false
    if (attachment.state.is !== 'attached') return
    const { connectionId } = attachment.state
    const { at, cols, rows, data, exact } = snapshot
    this.#effects.send(attachment, { type: 'snapshot', at, cols, rows, bytes: data.byteLength, exact })
    for (let from = 0; from < data.byteLength; from += MAX_DATA_BYTES) {
      this.#effects.push({
        do: 'send',
        connectionId,
        data: packData('snapshot', data.subarray(from, from + MAX_DATA_BYTES)),
      })
    }
    attachment.base = at
    attachment.sent = at
    attachment.sentMax = Math.max(attachment.sentMax, at)
    const size = this.#resizes.sizeAt(at)
    attachment.resizeSerial = size.serial
    // The terminal may have been resized without any output while the screen was rendered.
    if (size.cols === cols && size.rows === rows) return
    this.#effects.send(attachment, { type: 'resized', at, cols: size.cols, rows: size.rows })
  }

  /**
   * An attachment that fell behind the log continues at what is left: with a gap, or a screen. It is told when its
   * window has room, so that one which reads nothing is told once, however much is trimmed meanwhile.
   */
  #skipTrimmed(attachment: Attachment): void {
    if (
      attachment.sent >= this.#log.start ||
      attachment.sent - attachment.acked >= attachment.window.sizeBytes
    )
      return
    if (this.#isPty && attachment.dialect === 'v1') {
      this.requestSnapshot(attachment)
      return
    }
    this.#effects.send(attachment, { type: 'gap', from: attachment.sent, to: this.#log.start })
    attachment.sent = this.#log.start
    attachment.sentMax = Math.max(attachment.sentMax, attachment.sent)
  }

  /** Tells the resizes that happened at the attachment's place in the stream. */
  #sendResizes(attachment: Attachment): void {
    let resize = this.#resizes.after(attachment.resizeSerial)
    while (resize !== undefined && resize.at <= attachment.sent) {
      attachment.resizeSerial = resize.serial
      const { at, cols, rows } = resize
      this.#effects.send(attachment, { type: 'resized', at, cols, rows })
      resize = this.#resizes.after(attachment.resizeSerial)
    }
  }

  /** Bytes the attachment may get now; asks for another turn when only the turn is used up. */
  #room(attachment: Attachment, nowMs: number): number {
    const inFlight = attachment.sent - attachment.acked
    const window = knowsNoWindow(attachment) ? MAX_DATA_BYTES : attachment.window.sizeBytes - inFlight
    const allowed = Math.min(window, Math.floor(attachment.bandwidth?.available(nowMs) ?? window))
    const ready = Math.min(allowed, this.#log.end - attachment.sent)
    attachment.isThrottled = ready <= 0 && window > 0 && attachment.sent < this.#log.end
    if (ready <= 0) return 0
    if (this.#turnLeft > 0) return Math.min(ready, this.#turnLeft)
    if (!this.#isTurnRequested) this.#effects.push({ do: 'again' })
    this.#isTurnRequested = true
    return 0
  }
}

/** Payload of the next frame: a part of the window, so that a slow link delivers something often. */
function frameBytes(attachment: Attachment): number {
  if (knowsNoWindow(attachment)) return MAX_DATA_BYTES
  return Math.max(1, Math.min(MAX_DATA_BYTES, attachment.window.sizeBytes >> 2))
}
