import type { ClientMessage } from '../client-frames.ts'
import { ACK_DELAY_MS, PLAIN_INPUT_BYTES } from '../limits.ts'
import { type Attachment, canWrite } from './attachment.ts'
import type { EffectBuffer } from './effect-buffer.ts'
import type { Refusal } from './effects.ts'

/** A control message with a position in the input. */
export type SequencedControl = Extract<ClientMessage, { type: 'resize' | 'signal' | 'eof' }>

/** Settled entries are removed from the queue in batches of this many. */
const COMPACT_ENTRIES = 256

/** Passes input to the process exactly once and in order; enforces roles and credit. */
export class InputReceiver {
  readonly #effects: EffectBuffer
  readonly #windowBytes: number
  /** Bytes passed to the process that it has not read, by writer, oldest first. */
  readonly #unsettled: { attachment: Attachment; bytes: number }[] = []
  /** Index of the oldest unsettled entry. */
  #head = 0
  /** The process no longer reads input. */
  #isClosed = false

  constructor(effects: EffectBuffer, windowBytes: number) {
    this.#effects = effects
    this.#windowBytes = windowBytes
  }

  /** Takes input bytes. A refusal ends the connection. */
  accept(attachment: Attachment, bytes: Uint8Array, nowMs: number): Refusal | undefined {
    if (attachment.ignoreInputUntilEpoch !== undefined) return undefined
    if (!canWrite(attachment.role)) {
      return { code: 'role_refused', message: `Cannot take input: this attachment is a ${attachment.role}` }
    }
    const unsettled = attachment.inputAccepted - attachment.inputSettled
    const isUnwindowed = attachment.acknowledgement === 'connection'
    const grantedBytes = isUnwindowed ? PLAIN_INPUT_BYTES : this.#windowBytes
    if (unsettled + bytes.byteLength > grantedBytes) {
      const message = `Cannot take input: more than ${grantedBytes} bytes are unsettled`
      return { code: isUnwindowed ? 'input_overflow' : 'bad_frame', message }
    }
    if (bytes.byteLength === 0) return undefined
    attachment.inputAccepted += bytes.byteLength
    if (this.#isClosed) {
      this.#settle(attachment, bytes.byteLength, nowMs)
      this.#sendStdinClosed(attachment)
      return undefined
    }
    const last = this.#head < this.#unsettled.length ? this.#unsettled.at(-1) : undefined
    if (last?.attachment === attachment) last.bytes += bytes.byteLength
    else this.#unsettled.push({ attachment, bytes: bytes.byteLength })
    this.#effects.push({ do: 'write', bytes })
    return undefined
  }

  /** Checks a control message's role and position; `'apply'` means it is the next one. */
  admit(attachment: Attachment, message: SequencedControl, nowMs: number): 'apply' | 'skip' | Refusal {
    if (attachment.ignoreInputUntilEpoch !== undefined) return 'skip'
    if (attachment.role !== 'driver') {
      return {
        code: 'role_refused',
        message: `Cannot apply ${message.type}: this attachment is a ${attachment.role}`,
      }
    }
    if (message.seq <= attachment.controlSeq) return 'skip'
    if (message.seq !== attachment.controlSeq + 1 || message.at !== attachment.inputAccepted) {
      return {
        code: 'desync',
        message: `Cannot apply ${message.type}: expected number ${attachment.controlSeq + 1} at ${attachment.inputAccepted}`,
      }
    }
    attachment.controlSeq = message.seq
    attachment.inputAckDueMs ??= nowMs + ACK_DELAY_MS
    return 'apply'
  }

  /** The process has read `bytes` more. */
  settled(bytes: number, nowMs: number): void {
    let left = bytes
    while (left > 0) {
      const first = this.#unsettled[this.#head]
      if (first === undefined) return
      const part = Math.min(left, first.bytes)
      first.bytes -= part
      left -= part
      if (first.bytes === 0) this.#pass()
      this.#settle(first.attachment, part, nowMs)
    }
  }

  /** Writer of the oldest unsettled bytes. */
  get oldestWriter(): Attachment | undefined {
    return this.#unsettled[this.#head]?.attachment
  }

  /** How many attachments have input that the process has not read. */
  countWriters(): number {
    return new Set(this.#unsettled.slice(this.#head).map(({ attachment }) => attachment)).size
  }

  /** The process no longer reads input: queued bytes count as settled, and with `notifies` writers are sent `stdinClosed`. */
  close(attachments: Iterable<Attachment>, nowMs: number, notifies: boolean): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const attachment of attachments) {
      attachment.stdinClosedAt = attachment.inputSettled
      if (notifies && canWrite(attachment.role)) this.#sendStdinClosed(attachment)
    }
    const unsettled = this.#unsettled.splice(0).slice(this.#head)
    this.#head = 0
    for (const { attachment, bytes } of unsettled) this.#settle(attachment, bytes, nowMs)
  }

  /** Sends `stdinClosed` again to a writer that has reconnected. */
  repeatStdinClosed(attachment: Attachment): void {
    attachment.isStdinClosedSent = false
    if (this.#isClosed && canWrite(attachment.role)) this.#sendStdinClosed(attachment)
  }

  /** Sends the input ack when it is due and the connection accepts it. */
  ackIfDue(attachment: Attachment, nowMs: number): void {
    if (attachment.isBlocked) return
    if (attachment.inputAckDueMs !== undefined && nowMs >= attachment.inputAckDueMs) this.#ack(attachment)
  }

  #settle(attachment: Attachment, bytes: number, nowMs: number): void {
    attachment.inputSettled += bytes
    const unacked = attachment.inputSettled - attachment.inputAckSent.at
    if (unacked * 4 >= this.#windowBytes && !attachment.isBlocked) this.#ack(attachment)
    else attachment.inputAckDueMs ??= nowMs + ACK_DELAY_MS
  }

  /** Removes settled entries in batches: removing them one by one is slow in a long queue. */
  #pass(): void {
    this.#head += 1
    if (this.#head < COMPACT_ENTRIES) return
    this.#unsettled.splice(0, this.#head)
    this.#head = 0
  }

  #ack(attachment: Attachment): void {
    attachment.inputAckDueMs = undefined
    attachment.inputAckSent = { at: attachment.inputSettled, seq: attachment.controlSeq }
    this.#effects.send(attachment, {
      type: 'ack',
      input: attachment.inputSettled,
      seq: attachment.controlSeq,
    })
  }

  #sendStdinClosed(attachment: Attachment): void {
    if (attachment.isStdinClosedSent) return
    attachment.isStdinClosedSent = true
    // Nothing was read from attachments that were created later.
    this.#effects.send(attachment, { type: 'stdinClosed', at: attachment.stdinClosedAt ?? 0 })
  }
}
