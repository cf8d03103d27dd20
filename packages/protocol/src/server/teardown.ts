import { AWAITED_MS } from '../limits.ts'
import type { Attachment } from './attachment.ts'
import type { ConnectionId, Refusal } from './effects.ts'
import { beginEnding } from './ending.ts'
import type { SessionParts } from './session-parts.ts'

/** Says why, closes, and forgets a connection. */
export function refuseConnection(
  parts: SessionParts,
  connectionId: ConnectionId,
  refusal: Refusal,
  nowMs: number,
): void {
  const known = parts.connections.get(connectionId)
  if (known === undefined) return
  parts.effects.sendRefusal(connectionId, known.rights.dialect, refusal)
  // Asked to come back at once, it is waited for, also where nobody else would be.
  dropConnection(parts, connectionId, nowMs, refusal.code === 'reauthorise' ? nowMs + AWAITED_MS : nowMs)
}

/** Forgets a connection; its attachment, if any, waits to resume. */
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
    // One that has stalled no longer holds the program back, and does not begin to by leaving.
    if (!attachment.isStalled) {
      flow.retainFrom(attachment.acked)
      flow.beginGrace(nowMs)
    }
  }
  attachments.disconnect(attachment, nowMs, returnExpectedUntilMs)
  lifecycle.expectReturn(returnExpectedUntilMs)
  attachment.awaitsSnapshot = false
  if (attachment.dialect === 'plain') {
    // It cannot come back, and the session was its own, whoever else is watching.
    attachments.forget(attachment)
    beginEnding(parts, nowMs)
  }
  if (attachments.attachedCount === 0) lifecycle.markIdle(nowMs)
  attachments.presenceChanged()
}

/** Closes a connection whose attachment has moved to a newer one. */
export function replaceConnection(parts: SessionParts, connectionId: ConnectionId): void {
  parts.connections.delete(connectionId)
  parts.effects.sendRefusal(connectionId, 'v1', {
    code: 'replaced',
    message: 'A newer connection of this attachment took over',
  })
}

/** An attachment leaves on purpose: its lease is free at once and it cannot resume. */
export function detach(parts: SessionParts, attachment: Attachment, nowMs: number): void {
  if (attachment.state.is !== 'attached') return
  const { attachments, effects } = parts
  const { connectionId } = attachment.state
  const isHolder = attachments.lease.holder === attachment.id
  dropConnection(parts, connectionId, nowMs)
  if (isHolder) attachments.lease.free()
  attachments.retire(attachment)
  attachments.presenceChanged()
  effects.closeNormally(connectionId)
}
