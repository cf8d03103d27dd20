import { encode } from '../codec.ts'
import { type ErrorCode, ERRORS } from '../errors.ts'
import { MAX_ERROR_CHARS } from '../limits.ts'
import { formatRetryMessage } from '../retry-after.ts'
import type { ServerMessage } from '../server-frames.ts'
import type { StopReason } from '../stop-reason.ts'
import type { Attachment } from './attachment.ts'
import type { ConnectionId, Refusal, ServerEffect } from './effects.ts'

const NORMAL_CLOSE = 1000

/** Collects the effects of one call into the session, in order. */
export class EffectBuffer {
  #effects: ServerEffect[] = []

  push(effect: ServerEffect): void {
    this.#effects.push(effect)
  }

  /** Returns and clears the collected effects. */
  take(): readonly ServerEffect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  /** Sends a `sandwire.v1` message; ignored for detached attachments and plain clients. */
  send(attachment: Attachment, message: ServerMessage): void {
    if (attachment.state.kind !== 'attached' || attachment.dialect !== 'v1') return
    this.push({ do: 'send', connectionId: attachment.state.connectionId, data: encode(message) })
  }

  /** Sends an error that does not end the connection, in either dialect. */
  sendWarning(attachment: Attachment, refusal: Refusal): void {
    if (attachment.state.kind !== 'attached') return
    const text = errorText(refusal)
    const data = encode(
      attachment.dialect === 'v1' ? { ...text, fatal: false, ...reasonField(refusal) } : text,
    )
    this.push({ do: 'send', connectionId: attachment.state.connectionId, data })
  }

  /** Sends the error, then closes the connection. */
  sendRefusal(connectionId: ConnectionId, dialect: 'plain' | 'v1', refusal: Refusal): void {
    const text = errorText({ ...refusal, message: formatRetryMessage(refusal) })
    this.push({
      do: 'send',
      connectionId,
      data: encode(dialect === 'v1' ? { ...text, fatal: true, ...reasonField(refusal) } : text),
    })
    this.push({ do: 'close', connectionId, code: ERRORS[refusal.code].close, reason: refusal.code })
  }

  closeNormally(connectionId: ConnectionId): void {
    this.push({ do: 'close', connectionId, code: NORMAL_CLOSE, reason: '' })
  }
}

/** Limits the length and removes lone surrogates, so that every client can decode the error. */
function errorText({ code, message }: Refusal): { type: 'error'; code: ErrorCode; message: string } {
  return { type: 'error', code, message: message.slice(0, MAX_ERROR_CHARS).toWellFormed() }
}

function reasonField({ reason }: Refusal): { reason?: StopReason } {
  return reason === undefined ? {} : { reason }
}
