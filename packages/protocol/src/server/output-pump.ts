import { packData } from '../data-frame.ts'
import { MAX_BACKLOG_BYTES, MAX_DATA_BYTES } from '../limits.ts'
import type { OutputLog } from '../output-log.ts'
import type { ResizeLog } from '../resize-log.ts'
import type { SnapshotPart } from '../server-frames.ts'
import type { Attachment } from './attachment.ts'
import type { Refusal } from './effects.ts'
import type { EffectBuffer } from './effect-buffer.ts'

/** A screen rendered at an exact offset. */
export interface Snapshot {
  readonly at: number
  readonly cols: number
  readonly rows: number
  readonly data: Uint8Array
  readonly exact: boolean
  readonly parts?: readonly SnapshotPart[]
}

/** Sends output to attachments, each from its own offset and within its own window. */
export class OutputPump {
  readonly #log: OutputLog
  readonly #resizes: ResizeLog
  readonly #effects: EffectBuffer
  readonly #isPty: boolean
  readonly #turnBytes: number
  /** Bytes that may still be sent in this turn of the event loop, and when the turn began. */
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

  /** Sends what the attachment may get now. While input is private, an agent gets nothing. */
  pump(attachment: Attachment, isInputPrivate: boolean, nowMs: number): void {
    // Turns are rarely shorter than a millisecond; a finer clock gives calls of one turn different times.
    if (nowMs >= this.#turnMs + 1) {
      this.#turnMs = nowMs
      this.#turnLeft = this.#turnBytes
    }
    attachment.isThrottled = false
    if (attachment.isAgent && isInputPrivate) return this.#withhold(attachment)
    // Output for a full connection stays in the log, so waiting costs no memory.
    if (
      attachment.state.kind !== 'attached' ||
      attachment.outputPhase === 'awaitingSnapshot' ||
      attachment.isBlocked
    )
      return
    const { connectionId } = attachment.state
    this.#skipWithheld(attachment)
    this.#skipTrimmed(attachment)
    while (isStreaming(attachment)) {
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

  /** The connection was full and takes output again. */
  drained(attachment: Attachment): void {
    attachment.isBlocked = false
    const { skipsBacklog, outputPhase, sent } = attachment
    const isBehind = this.#log.end - sent > MAX_BACKLOG_BYTES
    if (skipsBacklog && outputPhase === 'streaming' && isBehind) this.requestSnapshot(attachment)
  }

  /** Requests a rendered screen; output waits for it. */
  requestSnapshot(attachment: Attachment): void {
    attachment.outputPhase = 'awaitingSnapshot'
    this.#effects.push({ do: 'snapshot', attachment: attachment.id })
  }

  /** Sends a rendered screen and continues after it. */
  sendSnapshot(attachment: Attachment, snapshot: Snapshot): void {
    attachment.outputPhase = 'streaming'
    if (attachment.state.kind !== 'attached') return
    const { connectionId } = attachment.state
    const { at, cols, rows, data, exact, parts } = snapshot
    this.#effects.send(attachment, {
      type: 'snapshot',
      at,
      cols,
      rows,
      bytes: data.byteLength,
      exact,
      ...(parts === undefined ? {} : { parts }),
    })
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

  /** Counts output as consumed without sending it, so that it does not pause the process. */
  #withhold(attachment: Attachment): void {
    if (attachment.sent === this.#log.end) return
    attachment.withheldFrom ??= attachment.sent
    attachment.sent = this.#log.end
    attachment.sentMax = this.#log.end
    attachment.acked = this.#log.end
  }

  /** Input is no longer private: output that was withheld becomes a gap. */
  #skipWithheld(attachment: Attachment): void {
    if (attachment.withheldFrom === undefined) return
    this.#effects.send(attachment, { type: 'gap', from: attachment.withheldFrom, to: attachment.sent })
    attachment.withheldFrom = undefined
  }

  /**
   * Moves an attachment that fell behind the log to its start, with a gap or a snapshot. That waits for room in the window, so
   * that a client which reads nothing gets one gap however much is trimmed. A connection that acknowledges output has room
   * whenever it is not blocked.
   */
  #skipTrimmed(attachment: Attachment): void {
    const { sent, acked, acknowledgement, window } = attachment
    if (sent >= this.#log.start) return
    if (acknowledgement === 'client' && sent - acked >= window.sizeBytes) return
    if (this.#isPty && attachment.dialect === 'v1' && !attachment.isAgent) {
      this.requestSnapshot(attachment)
      return
    }
    this.#effects.send(attachment, { type: 'gap', from: attachment.sent, to: this.#log.start })
    attachment.sent = this.#log.start
    attachment.sentMax = Math.max(attachment.sentMax, attachment.sent)
  }

  /** Sends the resizes that happened up to the attachment's offset. */
  #sendResizes(attachment: Attachment): void {
    let resize = this.#resizes.after(attachment.resizeSerial)
    while (resize !== undefined && resize.at <= attachment.sent) {
      attachment.resizeSerial = resize.serial
      const { at, cols, rows } = resize
      this.#effects.send(attachment, { type: 'resized', at, cols, rows })
      resize = this.#resizes.after(attachment.resizeSerial)
    }
  }

  /** Bytes that may be sent to the attachment now; requests another turn when only the turn's budget is used up. */
  #room(attachment: Attachment, nowMs: number): number {
    const inFlight = attachment.sent - attachment.acked
    const window =
      attachment.acknowledgement === 'connection' ? MAX_DATA_BYTES : attachment.window.sizeBytes - inFlight
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

function isStreaming(attachment: Attachment): boolean {
  return attachment.outputPhase !== 'awaitingSnapshot'
}

/** Payload of the next frame: a quarter of the window, so that a slow connection delivers frames often. */
function frameBytes(attachment: Attachment): number {
  if (attachment.acknowledgement === 'connection') return MAX_DATA_BYTES
  return Math.max(1, Math.min(MAX_DATA_BYTES, attachment.window.sizeBytes >> 2))
}
