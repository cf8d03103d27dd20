import type { Attachment } from './attachment.ts'
import { refuseLink } from './departure.ts'
import type { LinkId, Refusal } from './effects.ts'
import type { LinkRights } from './link-table.ts'
import type { SessionParts } from './session-parts.ts'

/** Whoever has more than this part of all places is a crowd, and makes way for others also where it is connected. */
const CROWD = 1 / 4

/** How much everybody has, the newcomer's own included. */
function countOf(principals: Iterable<string>, newcomer?: string): (principal: string) => number {
  const counts = new Map<string, number>(newcomer === undefined ? [] : [[newcomer, 1]])
  for (const principal of principals) counts.set(principal, (counts.get(principal) ?? 0) + 1)
  return (principal) => counts.get(principal) ?? 0
}

/** Whether the first makes way rather than the second, both of people with as many places. */
function goesFirst(one: Attachment, other: Attachment): boolean {
  if (one.state.is === 'attached') return other.state.is === 'attached'
  return other.state.is === 'attached' || one.state.sinceMs < other.state.sinceMs
}

/** The attachment that makes way for a newcomer; undefined when none does. */
function whoLeaves({ roster, options }: SessionParts, { principal, authority }: LinkRights) {
  const all = [...roster.all()]
  const seats = countOf(
    all.map((each) => each.principal),
    principal,
  )
  const crowd = options.limits.maxAttachments * CROWD
  // The driver's place is kept; and a plain connection ends its session with it.
  const others = all.filter(({ id, dialect }) => id !== roster.lease.holder && dialect !== 'plain')
  let leaves: Attachment | undefined
  for (const each of others) {
    const has = seats(each.principal)
    const mayLeave =
      each.state.is === 'attached' ? has > crowd && has > seats(principal) : has >= seats(principal)
    if (!mayLeave) continue
    const most = leaves === undefined ? 0 : seats(leaves.principal)
    if (leaves === undefined || has > most || (has === most && goesFirst(each, leaves))) leaves = each
  }
  if (leaves !== undefined || authority !== 'driver' || seats(principal) > 1) return leaves
  return others.findLast((each) => each.authority !== 'driver')
}

/**
 * Room for one more attachment. One of whoever has the most makes way, so that nobody can push out the others, or keep
 * them out, by coming again and again.
 */
export function makeRoom(parts: SessionParts, rights: LinkRights, nowMs: number): Refusal | undefined {
  const { roster, gate, options } = parts
  const { maxAttachments } = options.limits
  // Those that left with input under way still cost memory.
  const isCrammed = gate.countWriters() >= 2 * maxAttachments
  if (roster.size < maxAttachments && !isCrammed) return undefined
  const refusal: Refusal = {
    code: 'too_many_attachments',
    message: `Cannot attach: the session has ${roster.size} attachments`,
  }
  const leaves = isCrammed ? undefined : whoLeaves(parts, rights)
  if (leaves === undefined) return refusal
  if (leaves.state.is === 'attached') refuseLink(parts, leaves.state.link, refusal, nowMs)
  roster.forget(leaves)
  return undefined
}

/** Room for one more connection, which is in the table already; of the crowd, the newest that has not said hello makes way. */
export function makeRoomForLink(parts: SessionParts, rights: LinkRights, nowMs: number): Refusal | undefined {
  const { links, roster, options } = parts
  // As many again may be on their way to replace the ones that are there.
  if (links.size <= 2 * options.limits.maxAttachments) return undefined
  const refusal: Refusal = {
    code: 'too_many_attachments',
    message: `Cannot attach: the session has ${links.size} connections`,
  }
  const silent = links.all().filter(([link]) => roster.ofLink(link) === undefined)
  const count = countOf(silent.map(([, link]) => link.rights.principal))
  let leaves: { readonly link: LinkId; readonly has: number } | undefined
  for (const [link, { rights: of }] of silent) {
    const has = count(of.principal)
    if (has > count(rights.principal) && has >= (leaves?.has ?? 0)) leaves = { link, has }
  }
  if (leaves === undefined) return refusal
  refuseLink(parts, leaves.link, refusal, nowMs)
  return undefined
}
