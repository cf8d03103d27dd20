import { AWAITED_MS } from '../limits.ts'
import type { Attachment } from './attachment.ts'
import type { LinkId, Refusal } from './effects.ts'
import { beginEnding } from './ending.ts'
import type { SessionParts } from './session-parts.ts'

/** Says why, closes, and forgets a connection. */
export function refuseLink(parts: SessionParts, link: LinkId, refusal: Refusal, nowMs: number): void {
  const known = parts.links.get(link)
  if (known === undefined) return
  parts.outbox.refuse(link, known.rights.dialect, refusal)
  // Asked to come back at once, it is waited for, also where nobody else would be.
  dropLink(parts, link, nowMs, refusal.code === 'reauthorise' ? nowMs + AWAITED_MS : nowMs)
}

/** Forgets a connection; its attachment, if any, waits to resume. */
export function dropLink(parts: SessionParts, link: LinkId, nowMs: number, awaitedMs = nowMs): void {
  const { links, roster, valve, life, options } = parts
  if (!links.delete(link)) return
  const attachment = roster.ofLink(link)
  if (attachment === undefined) return
  if (roster.lease.holder === attachment.id) {
    roster.lease.reserve(nowMs + options.limits.graceMs)
    // One that has stalled no longer holds the program back, and does not begin to by leaving.
    if (!attachment.isStalled) {
      valve.pinAt(attachment.acked)
      valve.beginGrace(nowMs)
    }
  }
  roster.unlink(attachment, nowMs, awaitedMs)
  life.await(awaitedMs)
  attachment.awaitsSnapshot = false
  if (attachment.dialect === 'plain') {
    // It cannot come back, and the session was its own, whoever else is watching.
    roster.forget(attachment)
    beginEnding(parts, nowMs)
  }
  if (roster.attachedCount === 0) life.vacate(nowMs)
  roster.announce()
}

/** Closes a connection whose attachment has moved to a newer one. */
export function replaceLink(parts: SessionParts, link: LinkId): void {
  parts.links.delete(link)
  parts.outbox.refuse(link, 'v1', {
    code: 'replaced',
    message: 'A newer connection of this attachment took over',
  })
}

/** An attachment leaves on purpose: its lease is free at once and it cannot resume. */
export function detach(parts: SessionParts, attachment: Attachment, nowMs: number): void {
  if (attachment.state.is !== 'attached') return
  const { roster, outbox } = parts
  const { link } = attachment.state
  const isHolder = roster.lease.holder === attachment.id
  dropLink(parts, link, nowMs)
  if (isHolder) roster.lease.free()
  roster.retire(attachment)
  roster.announce()
  outbox.closeNormally(link)
}
