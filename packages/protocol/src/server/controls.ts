import type { ClientMessage, PlainClientMessage } from '../client-frames.ts'
import { signalNumber } from '../signal-number.ts'
import type { Attachment } from './attachment.ts'
import { detach } from './departure.ts'
import type { Refusal } from './effects.ts'
import type { PlacedMessage } from './input-gate.ts'
import { moveLease } from './lease-desk.ts'
import type { SessionParts } from './session-parts.ts'

/** Acts on a control message of an attachment. A refusal ends its connection. */
export function control(
  parts: SessionParts,
  attachment: Attachment,
  message: ClientMessage | PlainClientMessage,
  nowMs: number,
): Refusal | undefined {
  switch (message.type) {
    case 'resize':
    case 'signal':
    case 'eof':
      return placed(parts, attachment, message, nowMs)
    case 'ack':
      return parts.pump.acked(attachment, message.output, parts.valve.isPaused, nowMs)
    case 'ping':
      attachment.pongOwed = message.id
      return undefined
    case 'take':
    case 'ask':
    case 'give':
      return moveLease(parts, attachment, message, nowMs)
    case 'roleSeen':
      if (attachment.deafUntilEpoch !== undefined && message.epoch >= attachment.deafUntilEpoch) {
        attachment.deafUntilEpoch = undefined
      }
      return undefined
    case 'detach':
      detach(parts, attachment, nowMs)
      return undefined
    case 'hello':
      return { code: 'bad_frame', message: 'Cannot take a second hello' }
  }
}

/** Applies a message that has a place in the input, once. */
function placed(
  parts: SessionParts,
  attachment: Attachment,
  message: PlacedMessage | PlainClientMessage,
  nowMs: number,
): Refusal | undefined {
  parts.life.noteInput(nowMs)
  if ('seq' in message) {
    const verdict = parts.gate.admit(attachment, message, nowMs)
    if (verdict === 'skip') return undefined
    if (verdict !== 'apply') return verdict
  }
  const isRunning = parts.life.state.is === 'running'
  switch (message.type) {
    case 'resize':
      resizeTo(parts, message.cols, message.rows)
      return undefined
    case 'signal':
      if (signalNumber(message.signal) === undefined) {
        return { code: 'bad_frame', message: `Cannot send signal "${message.signal}": not a signal` }
      }
      if (isRunning) parts.outbox.push({ do: 'signal', signal: message.signal })
      return undefined
    case 'eof':
      if (isRunning) parts.outbox.push({ do: 'closeInput' })
      return undefined
  }
}

/** Gives the terminal a size, if it has not got it. */
export function resizeTo(
  { resizes, options, life, log, outbox }: SessionParts,
  cols: number,
  rows: number,
): void {
  const { current } = resizes
  if (options.mode !== 'pty' || life.state.is !== 'running') return
  if (current.cols === cols && current.rows === rows) return
  resizes.record(log.end, cols, rows)
  outbox.push({ do: 'resize', cols, rows })
}
