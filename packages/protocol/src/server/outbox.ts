import { encode } from '../codec.ts'
import { type ErrorCode, ERRORS } from '../errors.ts'
import { MAX_ERROR_CHARS } from '../limits.ts'
import { messageWithWait } from '../retry-after.ts'
import type { ServerMessage } from '../server-frames.ts'
import type { StopReason } from '../stop-reason.ts'
import type { Attachment } from './attachment.ts'
import type { LinkId, Refusal, ServerEffect } from './effects.ts'

/** Close code of a conversation that ended as it should. */
const NORMAL_CLOSE = 1000

/** Collects the effects of one call into the session, in order. */
export class Outbox {
  #effects: ServerEffect[] = []

  push(effect: ServerEffect): void {
    this.#effects.push(effect)
  }

  /** Hands over what was collected. */
  take(): readonly ServerEffect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  /** Sends a `sandwire.v1` message to an attachment that has a connection and speaks it. */
  tell(attachment: Attachment, message: ServerMessage): void {
    if (attachment.state.is !== 'attached' || attachment.dialect !== 'v1') return
    this.push({ do: 'send', link: attachment.state.link, data: encode(message) })
  }

  /** Reports a fault that does not end the connection, in either dialect. */
  warn(attachment: Attachment, refusal: Refusal): void {
    if (attachment.state.is !== 'attached') return
    const text = errorText(refusal)
    const data = encode(
      attachment.dialect === 'v1' ? { ...text, fatal: false, ...reasonField(refusal) } : text,
    )
    this.push({ do: 'send', link: attachment.state.link, data })
  }

  /** Says why, then closes. */
  refuse(link: LinkId, dialect: 'plain' | 'v1', refusal: Refusal): void {
    const text = errorText({ ...refusal, message: messageWithWait(refusal) })
    this.push({
      do: 'send',
      link,
      data: encode(dialect === 'v1' ? { ...text, fatal: true, ...reasonField(refusal) } : text),
    })
    this.push({ do: 'close', link, code: ERRORS[refusal.code].close, reason: refusal.code })
  }

  closeNormally(link: LinkId): void {
    this.push({ do: 'close', link, code: NORMAL_CLOSE, reason: '' })
  }
}

/** A refusal as it goes out: short enough, and without half characters, so that every client can decode it. */
function errorText({ code, message }: Refusal): { type: 'error'; code: ErrorCode; message: string } {
  return { type: 'error', code, message: message.slice(0, MAX_ERROR_CHARS).toWellFormed() }
}

function reasonField({ reason }: Refusal): { reason?: StopReason } {
  return reason === undefined ? {} : { reason }
}
