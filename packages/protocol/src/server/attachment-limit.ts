import type { Attachment } from './attachment.ts'
import { refuseConnection } from './teardown.ts'
import type { ConnectionId, Refusal } from './effects.ts'
import type { ConnectionRights } from './connection-table.ts'
import type { SessionParts } from './session-parts.ts'

/** An account with more than this share of the attachments may lose connected ones to newcomers. */
const CROWD_SHARE = 1 / 4

/** Counts per principal, including the newcomer's own entry. */
function countByPrincipal(principals: Iterable<string>, opening?: string): (principal: string) => number {
  const counts = new Map<string, number>(opening === undefined ? [] : [[opening, 1]])
  for (const principal of principals) counts.set(principal, (counts.get(principal) ?? 0) + 1)
  return (principal) => counts.get(principal) ?? 0
}

/** Orders two attachments of equally large accounts: detached before connected, then the longest detached. */
function isEvictedBefore(one: Attachment, other: Attachment): boolean {
  if (one.state.kind === 'attached') return other.state.kind === 'attached'
  return other.state.kind === 'attached' || one.state.sinceMs < other.state.sinceMs
}

/** The attachment to evict for a newcomer; undefined when there is none. */
function findEvicted({ attachments, options }: SessionParts, { principal, authority }: ConnectionRights) {
  const all = [...attachments.all()]
  const countOf = countByPrincipal(
    all.map((each) => each.principal),
    principal,
  )
  const crowd = options.limits.maxAttachments * CROWD_SHARE
  // Neither the driver nor a plain client, whose session would end with it, is evicted.
  const others = all.filter(({ id, dialect }) => id !== attachments.lease.holder && dialect !== 'plain')
  let evicted: Attachment | undefined
  for (const each of others) {
    const has = countOf(each.principal)
    const isEvictable =
      each.state.kind === 'attached' ? has > crowd && has > countOf(principal) : has >= countOf(principal)
    if (!isEvictable) continue
    const most = evicted === undefined ? 0 : countOf(evicted.principal)
    if (evicted === undefined || has > most || (has === most && isEvictedBefore(each, evicted)))
      evicted = each
  }
  if (evicted !== undefined || authority !== 'driver' || countOf(principal) > 1) return evicted
  return others.findLast((each) => each.authority !== 'driver')
}

/**
 * Makes room for one more attachment: one of the account that has the most is evicted, so that no account can push out or
 * keep out the others by attaching repeatedly.
 */
export function checkAttachmentLimit(
  parts: SessionParts,
  rights: ConnectionRights,
  nowMs: number,
): Refusal | undefined {
  const { attachments, input, options } = parts
  const { maxAttachments } = options.limits
  // Detached attachments with unread input still cost memory.
  const hasTooManyWriters = input.countWriters() >= 2 * maxAttachments
  if (attachments.size < maxAttachments && !hasTooManyWriters) return undefined
  const refusal: Refusal = {
    code: 'too_many_attachments',
    message: `Cannot attach: the session has ${attachments.size} attachments`,
  }
  const evicted = hasTooManyWriters ? undefined : findEvicted(parts, rights)
  if (evicted === undefined) return refusal
  if (evicted.state.kind === 'attached') refuseConnection(parts, evicted.state.connectionId, refusal, nowMs)
  attachments.forget(evicted)
  return undefined
}

/**
 * Makes room for a connection that is already in the table: of the account with the most connections without a hello, the
 * newest is closed.
 */
export function checkConnectionLimit(
  parts: SessionParts,
  rights: ConnectionRights,
  nowMs: number,
): Refusal | undefined {
  const { connections, attachments, options } = parts
  // Every attachment may have a second connection that is about to replace its first.
  if (connections.size <= 2 * options.limits.maxAttachments) return undefined
  const refusal: Refusal = {
    code: 'too_many_attachments',
    message: `Cannot attach: the session has ${connections.size} connections`,
  }
  const withoutHello = connections
    .all()
    .filter(([connectionId]) => attachments.byConnection(connectionId) === undefined)
  const count = countByPrincipal(withoutHello.map(([, connectionId]) => connectionId.rights.principal))
  let evicted: { readonly connectionId: ConnectionId; readonly has: number } | undefined
  for (const [connectionId, { rights: other }] of withoutHello) {
    const has = count(other.principal)
    if (has > count(rights.principal) && has >= (evicted?.has ?? 0)) evicted = { connectionId, has }
  }
  if (evicted === undefined) return refusal
  refuseConnection(parts, evicted.connectionId, refusal, nowMs)
  return undefined
}
