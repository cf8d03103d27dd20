import { encode } from '../codec.ts'
import { signalNumber } from '../signal-number.ts'
import type { Attachment } from './attachment.ts'
import type { SessionParts } from './session-parts.ts'

/** Tells an attachment how the process ended, after all its output, and closes once everything was consumed. */
export function sendExit({ lifecycle, log, effects }: SessionParts, attachment: Attachment): void {
  const { state } = lifecycle
  if (state.is !== 'exited' || attachment.state.is !== 'attached' || attachment.awaitsSnapshot) return
  if (attachment.sent !== log.end) return
  const { exit } = state
  const { connectionId } = attachment.state
  if (attachment.dialect === 'plain') {
    if (attachment.isExitSent) return
    attachment.isExitSent = true
    const code = exit.code ?? 128 + (signalNumber(exit.signal ?? '') ?? 0)
    const signal = exit.signal === null ? {} : { signal: exit.signal }
    effects.push({ do: 'send', connectionId, data: encode({ type: 'exit', code, ...signal }) })
    effects.closeNormally(connectionId)
    return
  }
  if (!attachment.isExitSent) effects.send(attachment, { type: 'exit', ...exit, outputEnd: log.end })
  attachment.isExitSent = true
  if (attachment.isDone || attachment.acked !== log.end) return
  attachment.isDone = true
  effects.closeNormally(connectionId)
}
