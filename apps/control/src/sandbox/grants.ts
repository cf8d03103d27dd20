import { encodeId } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Grant } from './access.ts'

/** Grants of one sandbox that may be open or held at once. */
export const MAX_GRANTS = 64
/** How long a grant lasts unless it says otherwise. */
export const DEFAULT_GRANT_SECONDS = 7 * 24 * 60 * 60
export const MAX_GRANT_SECONDS = 90 * 24 * 60 * 60
/** Bytes of the part that tells the grants of a sandbox apart; it is no secret. */
const GRANT_BYTES = 12

/** The sandbox, then 96 bits. Shorter than a session id, so that neither is taken for the other. */
const GRANT_ID = /^([0-9a-hjkmnp-tv-z]{32})\.[0-9a-hjkmnp-tv-z]{20}$/
const LINK = /^([0-9a-hjkmnp-tv-z]{32}\.[0-9a-hjkmnp-tv-z]{20})\.([A-Za-z0-9_-]{43})$/

/** What a grant may be for; the owner's own rights are never given away. */
export type GrantRole = Grant['role']

/** Everything that is stored of a grant but the hash of its link. */
export interface GrantRecord {
  readonly id: string
  /** Absent: the whole sandbox. */
  readonly session?: string
  readonly role: GrantRole
  /** What the owner calls it. */
  readonly label: string
  readonly createdMs: number
  readonly expiresMs: number
  /** Name of the owner when it was made. */
  readonly ownerName: string
  /** Who holds it; absent until its link is exchanged. */
  readonly holder?: { readonly account: string; readonly name: string }
}

/** A grant that somebody holds, as they are told of it. */
export interface HeldGrant {
  readonly grant: string
  readonly sandbox: string
  /** Not told to who got one session of it only. */
  readonly sandboxName?: string
  readonly session?: string
  readonly role: GrantRole
  readonly ownerName: string
  readonly expiresMs: number
}

export function mintGrantId(sandbox: string, random: (bytes: Uint8Array) => Uint8Array): string {
  return `${sandbox}.${encodeId(random(new Uint8Array(GRANT_BYTES)))}`
}

/** The sandbox that a grant is of, or undefined when the id is spelled wrong. */
export function sandboxOfGrant(grant: string): string | undefined {
  return GRANT_ID.exec(grant)?.[1]
}

/** The two parts of what a link carries in its fragment. */
export function parseLink(text: string): { readonly grant: string; readonly secret: string } | undefined {
  const [, grant, secret] = LINK.exec(text) ?? []
  return grant === undefined || secret === undefined ? undefined : { grant, secret }
}

/** What to tell whoever gives this away; undefined when it gives no more than it seems to. */
export function noticeOf(role: GrantRole): string | undefined {
  return role === 'collaborator'
    ? 'A collaborator has a shell, and so can read and change every file in the sandbox'
    : undefined
}

/** Used, expired, withdrawn or never made: nobody can tell these apart. */
export function linkSpent(): SandwireError {
  return new SandwireError('link_spent', 'Cannot use the link: it was used, has expired or was withdrawn')
}

export function noSuchGrant(): SandwireError {
  return new SandwireError('not_found', 'No grant has this id')
}

/** What comes of exchanging a link. */
export type Exchange = 'bind' | 'held' | 'own' | 'spent'

/** Decides an exchange. `found` is the grant with that id, `linkHash` what is left of its secret. */
export function exchange(
  found: (GrantRecord & { readonly linkHash?: string }) | undefined,
  asked: {
    readonly owner: string
    readonly account: string
    readonly isSecretRight: (hash: string) => boolean
    readonly nowMs: number
  },
): Exchange {
  if (found === undefined || found.expiresMs <= asked.nowMs) return 'spent'
  // Who holds it already has what the link gives; the secret is erased and proves nothing any more.
  if (found.holder !== undefined) return found.holder.account === asked.account ? 'held' : 'spent'
  if (found.linkHash === undefined || !asked.isSecretRight(found.linkHash)) return 'spent'
  return asked.account === asked.owner ? 'own' : 'bind'
}

/** A grant as its holder is told of it. */
export function toHeld(
  { id, session, role, ownerName, expiresMs }: GrantRecord,
  sandbox: { readonly id: string; readonly name: string },
): HeldGrant {
  return {
    grant: id,
    sandbox: sandbox.id,
    ...(session === undefined ? { sandboxName: sandbox.name } : { session }),
    role,
    ownerName,
    expiresMs,
  }
}
