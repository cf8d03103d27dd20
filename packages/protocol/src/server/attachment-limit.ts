import type { Attachment } from './attachment.ts'
import { refuseConnection } from './teardown.ts'
import type { ConnectionId, Refusal } from './effects.ts'
import type { ConnectionRights } from './connection-table.ts'
import type { SessionParts } from './session-parts.ts'

/** Whoever has more than this part of all places is a crowd, and makes way for others also where it is connected. */
const CROWD_SHARE = 1 / 4

/** How much everybody has, the newcomer's own included. */
function countByPrincipal(principals: Iterable<string>, opening?: string): (principal: string) => number {
  const counts = new Map<string, number>(opening === undefined ? [] : [[opening, 1]])
  for (const principal of principals) counts.set(principal, (counts.get(principal) ?? 0) + 1)
  return (principal) => counts.get(principal) ?? 0
}

/** Whether the first makes way rather than the second, both of people with as many places. */
function isEvictedBefore(one: Attachment, other: Attachment): boolean {
  if (one.state.is === 'attached') return other.state.is === 'attached'
  return other.state.is === 'attached' || one.state.sinceMs < other.state.sinceMs
}

/** The attachment that makes way for a newcomer; undefined when none does. */
function findEvicted({ attachments, options }: SessionParts, { principal, authority }: ConnectionRights) {
  const all = [...attachments.all()]
  const seats = countByPrincipal(
    all.map((each) => each.principal),
    principal,
  )
  const crowd = options.limits.maxAttachments * CROWD_SHARE
  // The driver's place is kept; and a plain connection ends its session with it.
  const others = all.filter(({ id, dialect }) => id !== attachments.lease.holder && dialect !== 'plain')
  let evicted: Attachment | undefined
  for (const each of others) {
    const has = seats(each.principal)
    const isEvictable =
      each.state.is === 'attached' ? has > crowd && has > seats(principal) : has >= seats(principal)
    if (!isEvictable) continue
    const most = evicted === undefined ? 0 : seats(evicted.principal)
    if (evicted === undefined || has > most || (has === most && isEvictedBefore(each, evicted)))
      evicted = each
  }
  if (evicted !== undefined || authority !== 'driver' || seats(principal) > 1) return evicted
  return others.findLast((each) => each.authority !== 'driver')
}

/**
 * Room for one more attachment. One of whoever has the most makes way, so that nobody can push out the others, or keep
 * them out, by coming again and again.
 */
export function checkAttachmentLimit(
  parts: SessionParts,
  rights: ConnectionRights,
  nowMs: number,
): Refusal | undefined {
  const { attachments, input, options } = parts
  const { maxAttachments } = options.limits
  // Those that left with input under way still cost memory.
  const hasTooManyWriters = input.countWriters() >= 2 * maxAttachments
  if (attachments.size < maxAttachments && !hasTooManyWriters) return undefined
  const refusal: Refusal = {
    code: 'too_many_attachments',
    message: `Cannot attach: the session has ${attachments.size} attachments`,
  }
  const evicted = hasTooManyWriters ? undefined : findEvicted(parts, rights)
  if (evicted === undefined) return refusal
  if (evicted.state.is === 'attached') refuseConnection(parts, evicted.state.connectionId, refusal, nowMs)
  attachments.forget(evicted)
  return undefined
}

/** Room for one more connection, which is in the table already; of the crowd, the newest that has not said hello makes way. */
export function checkConnectionLimit(
  parts: SessionParts,
  rights: ConnectionRights,
  nowMs: number,
): Refusal | undefined {
  const { connections, attachments, options } = parts
  // As many again may be on their way to replace the ones that are there.
  if (connections.size <= 2 * options.limits.maxAttachments) return undefined
  const refusal: Refusal = {
    code: 'too_many_attachments',
    message: `Cannot attach: the session has ${connections.size} connections`,
  }
  const silent = connections
    .all()
    .filter(([connectionId]) => attachments.byConnection(connectionId) === undefined)
  const count = countByPrincipal(silent.map(([, connectionId]) => connectionId.rights.principal))
  let evicted: { readonly connectionId: ConnectionId; readonly has: number } | undefined
  for (const [connectionId, { rights: of }] of silent) {
    const has = count(of.principal)
    if (has > count(rights.principal) && has >= (evicted?.has ?? 0)) evicted = { connectionId, has }
  }
  if (evicted === undefined) return refusal
  refuseConnection(parts, evicted.connectionId, refusal, nowMs)
  return undefined
}
