import type { Attachment } from './attachment.ts'
import { refuseConnection } from './teardown.ts'
import type { Refusal } from './effects.ts'
import type { ConnectionRights } from './connection-table.ts'
import type { SessionParts } from './session-parts.ts'

/** Which attachments are meant: those that match everything given; all when nothing is. */
export interface AttachmentFilter {
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
function matches(which: AttachmentFilter, of: ConnectionRights | Attachment): boolean {
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
export function revoke(parts: SessionParts, which: AttachmentFilter, nowMs: number): number {
  const { connections, attachments } = parts
  let closed = 0
  for (const [connectionId, { rights }] of connections.all()) {
    if (
      !matches(which, rights) ||
      (which.attachment !== undefined && attachments.byConnection(connectionId)?.id !== which.attachment)
    )
      continue
    refuseConnection(parts, connectionId, REVOKED, nowMs)
    closed += 1
  }
  for (const attachment of Array.from(attachments.all())) {
    if (matches(which, attachment) && (which.attachment === undefined || which.attachment === attachment.id))
      attachments.retire(attachment)
  }
  attachments.presenceChanged()
  return closed
}
