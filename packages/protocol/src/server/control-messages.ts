import type { ClientMessage, PlainClientMessage } from '../client-frames.ts'
import { signalNumber } from '../signal-number.ts'
import type { Attachment } from './attachment.ts'
import { detach } from './teardown.ts'
import type { Refusal } from './effects.ts'
import type { SequencedControl } from './input-receiver.ts'
import { handleLeaseMessage } from './lease.ts'
import type { SessionParts } from './session-parts.ts'

/** Handles a control message of an attachment. A refusal ends its connection. */
export function handleControl(
  parts: SessionParts,
  attachment: Attachment,
  message: ClientMessage | PlainClientMessage,
  nowMs: number,
): Refusal | undefined {
  switch (message.type) {
    case 'resize':
    case 'signal':
    case 'eof':
      return applySequenced(parts, attachment, message, nowMs)
    case 'stdin':
      return writePane(parts, message, nowMs)
    case 'ack':
      return parts.pump.acked(attachment, message.output, parts.flow.isPaused, nowMs)
    case 'ping':
      attachment.pendingPongId = message.id
      return undefined
    case 'take':
    case 'ask':
    case 'give':
      return handleLeaseMessage(parts, attachment, message, nowMs)
    case 'private':
      parts.attachments.setPrivate(attachment, message.on)
      return undefined
    case 'roleSeen':
      if (
        attachment.ignoreInputUntilEpoch !== undefined &&
        message.epoch >= attachment.ignoreInputUntilEpoch
      ) {
        attachment.ignoreInputUntilEpoch = undefined
      }
      return undefined
    case 'detach':
      detach(parts, attachment, nowMs)
      return undefined
    case 'hello':
      return { code: 'bad_frame', message: 'Cannot take a second hello' }
  }
}

/** Types into another pane. A plain client drives the session it created, so it has the right. */
function writePane(
  { options, lifecycle, effects }: SessionParts,
  { pane, data }: Extract<PlainClientMessage, { type: 'stdin' }>,
  nowMs: number,
): Refusal | undefined {
  if (options.sizeFrom !== 'process')
    return { code: 'bad_frame', message: 'Cannot write to a pane: the session is no pane of tmux' }
  lifecycle.recordInput(nowMs)
  if (lifecycle.state.kind === 'running')
    effects.push({ do: 'writePane', pane, bytes: new TextEncoder().encode(data) })
  return undefined
}

/** Applies a message with a position in the input, once. */
function applySequenced(
  parts: SessionParts,
  attachment: Attachment,
  message: SequencedControl | Exclude<PlainClientMessage, { type: 'stdin' }>,
  nowMs: number,
): Refusal | undefined {
  parts.lifecycle.recordInput(nowMs)
  if ('seq' in message) {
    const verdict = parts.input.admit(attachment, message, nowMs)
    if (verdict === 'skip') return undefined
    if (verdict !== 'apply') return verdict
  }
  const isRunning = parts.lifecycle.state.kind === 'running'
  switch (message.type) {
    case 'resize':
      resizeTerminal(parts, message.cols, message.rows)
      return undefined
    case 'signal':
      if (signalNumber(message.signal) === undefined) {
        return { code: 'bad_frame', message: `Cannot send signal "${message.signal}": not a signal` }
      }
      if (isRunning) parts.effects.push({ do: 'signal', signal: message.signal })
      return undefined
    case 'eof':
      if (isRunning) parts.effects.push({ do: 'closeInput' })
      return undefined
  }
}

/** Resizes the terminal, unless it has that size already. */
export function resizeTerminal(
  { resizes, options, lifecycle, log, effects }: SessionParts,
  cols: number,
  rows: number,
): void {
  const { current } = resizes
  if (options.mode !== 'pty' || lifecycle.state.kind !== 'running') return
  if (current.cols === cols && current.rows === rows) return
  if (options.sizeFrom !== 'process') resizes.record(log.end, cols, rows)
  effects.push({ do: 'resize', cols, rows })
}
