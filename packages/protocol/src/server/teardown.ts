import type { ErrorCode } from '../errors.ts'
import { REAUTHORIZE_WAIT_MS } from '../limits.ts'
import type { Attachment } from './attachment.ts'
import type { ConnectionId, Refusal } from './effects.ts'
import type { SessionParts } from './session-parts.ts'

/** Sends the reason, then closes and forgets a connection. */
export function refuseConnection(
  parts: SessionParts,
  connectionId: ConnectionId,
  refusal: Refusal,
  nowMs: number,
): void {
  const known = parts.connections.get(connectionId)
  if (known === undefined) return
  parts.effects.sendRefusal(connectionId, known.rights.dialect, refusal)
  // The client reconnects at once with a new credential, so a session that is not kept waits for it.
  const isReturning = refusal.code === 'reauthorise'
  dropConnection(parts, connectionId, nowMs, isReturning ? nowMs + REAUTHORIZE_WAIT_MS : nowMs)
}

/** Forgets a connection. Its attachment, if it has one, can be resumed. */
export function dropConnection(
  parts: SessionParts,
  connectionId: ConnectionId,
  nowMs: number,
  returnExpectedUntilMs = nowMs,
): void {
  const { connections, attachments, flow, lifecycle, options } = parts
  if (!connections.delete(connectionId)) return
  const attachment = attachments.byConnection(connectionId)
  if (attachment === undefined) return
  if (attachments.lease.holder === attachment.id) {
    attachments.lease.reserve(nowMs + options.limits.graceMs)
    // A stalled driver did not pause the process, and must not start to by disconnecting.
    if (!attachment.isStalled) {
      flow.retainFrom(attachment.acked)
      flow.beginGrace(nowMs)
    }
  }
  attachments.disconnect(attachment, nowMs, returnExpectedUntilMs)
  lifecycle.expectReturn(returnExpectedUntilMs)
  if (attachment.outputPhase === 'awaitingSnapshot') attachment.outputPhase = 'streaming'
  if (attachment.dialect === 'plain') {
    // A plain client cannot resume, and its session ends with it even if others watch.
    attachments.forget(attachment)
    beginEnding(parts, nowMs)
  }
  if (attachments.attachedCount === 0) lifecycle.markIdle(nowMs)
  attachments.presenceChanged()
}

/** Closes a connection whose attachment has resumed on a newer one. */
export function replaceConnection(parts: SessionParts, connectionId: ConnectionId): void {
  parts.connections.delete(connectionId)
  parts.effects.sendRefusal(connectionId, 'v1', {
    code: 'replaced',
    message: 'A newer connection of this attachment took over',
  })
}

/** Handles `detach`: the lease is free at once, and the attachment cannot be resumed. */
export function detach(parts: SessionParts, attachment: Attachment, nowMs: number): void {
  if (attachment.state.kind !== 'attached') return
  const { attachments, effects } = parts
  const { connectionId } = attachment.state
  const isHolder = attachments.lease.holder === attachment.id
  dropConnection(parts, connectionId, nowMs)
  if (isHolder) attachments.lease.free()
  attachments.retire(attachment)
  attachments.presenceChanged()
  effects.closeNormally(connectionId)
}

/** Terminates the process; the session ends after it. */
export function beginEnding({ lifecycle, effects }: SessionParts, nowMs: number): void {
  if (lifecycle.beginEnding(nowMs)) effects.push({ do: 'terminate' })
}

/** Ends the session and closes its remaining connections with `code`. */
export function endSession(parts: SessionParts, code: ErrorCode, nowMs: number): void {
  const { connections, lifecycle, effects } = parts
  for (const [connectionId] of connections.all())
    refuseConnection(parts, connectionId, { code, message: 'The session has ended' }, nowMs)
  const wasStarted = lifecycle.state.kind !== 'pending'
  lifecycle.end()
  effects.push({ do: 'gone', wasStarted })
}
