import type { Attachment } from './attachment.ts'
import { refuseLink } from './departure.ts'
import type { Refusal } from './effects.ts'
import type { LinkRights } from './link-table.ts'
import type { SessionParts } from './session-parts.ts'

/** Which attachments are meant: those that match everything given; all when nothing is. */
export interface WhichAttachments {
  readonly principal?: string | undefined
  /** Sign-in, and grant, that the right to be here hangs on. */
  readonly login?: string | undefined
  readonly grant?: string | undefined
  /** Public name such as `a3`. */
  readonly attachment?: string | undefined
}

const REVOKED: Refusal = {
  code: 'revoked',
  message: 'Cannot stay attached: the right to be here was withdrawn',
}

/** Whether a connection or an attachment is one of those meant, as far as what it was allowed by tells. */
function isMeant(which: WhichAttachments, of: LinkRights | Attachment): boolean {
  const { principal, login, grant } = which
  return (
    (principal === undefined || principal === of.principal) &&
    (login === undefined || login === of.login) &&
    (grant === undefined || grant === of.grant)
  )
}

/**
 * Cuts off whoever matches, for good: connections close, those that may have resumed cannot, and a lease they hold is
 * free at once. Returns how many connections were closed.
 */
export function revoke(parts: SessionParts, which: WhichAttachments, nowMs: number): number {
  const { links, roster } = parts
  let closed = 0
  for (const [link, { rights }] of links.all()) {
    if (
      !isMeant(which, rights) ||
      (which.attachment !== undefined && roster.ofLink(link)?.id !== which.attachment)
    )
      continue
    refuseLink(parts, link, REVOKED, nowMs)
    closed += 1
  }
  for (const attachment of Array.from(roster.all())) {
    if (isMeant(which, attachment) && (which.attachment === undefined || which.attachment === attachment.id))
      roster.retire(attachment)
  }
  roster.announce()
  return closed
}
