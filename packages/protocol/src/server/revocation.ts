import type { Attachment } from './attachment.ts'
import { refuseConnection } from './teardown.ts'
import type { Refusal } from './effects.ts'
import type { ConnectionRights } from './connection-table.ts'
import type { SessionParts } from './session-parts.ts'

/** Selects the attachments that match every given field; all of them when none is given. */
export interface AttachmentFilter {
  readonly principal?: string | undefined
  /** Sign-in and grant that authorize the attachment. */
  readonly login?: string | undefined
  readonly grant?: string | undefined
  /** Public name such as `a3`. */
  readonly attachment?: string | undefined
}

const REVOKED: Refusal = {
  code: 'revoked',
  message: 'Disconnected: access was revoked',
}

/** Compares what authorizes a connection or attachment with the filter. */
function matches(filter: AttachmentFilter, of: ConnectionRights | Attachment): boolean {
  const { principal, login, grant } = filter
  return (
    (principal === undefined || principal === of.principal) &&
    (login === undefined || login === of.login) &&
    (grant === undefined || grant === of.grant)
  )
}

/** Closes the matching connections and retires their attachments, which frees their lease. Returns how many connections it closed. */
export function revoke(parts: SessionParts, filter: AttachmentFilter, nowMs: number): number {
  const { connections, attachments } = parts
  let closed = 0
  let hasRetired = false
  for (const [connectionId, { rights }] of connections.all()) {
    if (
      !matches(filter, rights) ||
      (filter.attachment !== undefined && attachments.byConnection(connectionId)?.id !== filter.attachment)
    )
      continue
    refuseConnection(parts, connectionId, REVOKED, nowMs)
    closed += 1
  }
  for (const attachment of Array.from(attachments.all())) {
    if (
      matches(filter, attachment) &&
      (filter.attachment === undefined || filter.attachment === attachment.id)
    ) {
      attachments.retire(attachment)
      hasRetired = true
    }
  }
  // A session without a match sends nothing to its other attachments.
  if (hasRetired) attachments.presenceChanged()
  return closed
}
