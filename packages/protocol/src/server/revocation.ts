import { refuseLink } from './departure.ts'
import type { Refusal } from './effects.ts'
import type { SessionParts } from './session-parts.ts'

/** Which attachments are meant: those that match everything given; all when nothing is. */
export interface WhichAttachments {
  readonly principal?: string | undefined
  /** Public name such as `a3`. */
  readonly attachment?: string | undefined
}

const REVOKED: Refusal = {
  code: 'revoked',
  message: 'Cannot stay attached: the right to be here was withdrawn',
}

/**
 * Cuts off whoever matches, for good: connections close, those that may have resumed cannot, and a lease they hold is
 * free at once. Returns how many connections were closed.
 */
export function revoke(parts: SessionParts, which: WhichAttachments, nowMs: number): number {
  const { links, roster } = parts
  let closed = 0
  for (const [link, { rights }] of links.all()) {
    const isOther = which.principal !== undefined && which.principal !== rights.principal
    if (isOther || (which.attachment !== undefined && roster.ofLink(link)?.id !== which.attachment)) continue
    refuseLink(parts, link, REVOKED, nowMs)
    closed += 1
  }
  for (const attachment of [...roster.all()]) {
    const isOther = which.principal !== undefined && which.principal !== attachment.principal
    if (!isOther && (which.attachment === undefined || which.attachment === attachment.id))
      roster.retire(attachment)
  }
  roster.announce()
  return closed
}
