import { encodeId } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Grant } from './access.ts'

/** Unexpired grants of one sandbox. */
export const MAX_GRANTS = 64
/** Default lifetime of a grant. */
export const DEFAULT_GRANT_SECONDS = 7 * 24 * 60 * 60
export const MAX_GRANT_SECONDS = 90 * 24 * 60 * 60
/** Random bytes of a grant id. They distinguish the grants of a sandbox and are not secret. */
const GRANT_BYTES = 12

/** The sandbox id, then 96 bits. Shorter than a session id, so that the two cannot be confused. */
const GRANT_ID = /^([0-9a-hjkmnp-tv-z]{32})\.[0-9a-hjkmnp-tv-z]{20}$/
const LINK = /^([0-9a-hjkmnp-tv-z]{32}\.[0-9a-hjkmnp-tv-z]{20})\.([A-Za-z0-9_-]{43})$/

/** Roles that can be shared; the owner's rights cannot. */
export type GrantRole = Grant['role']

/** A stored grant, without the hash of its share link. */
export interface GrantRecord {
  readonly id: string
  /** Absent: the whole sandbox. */
  readonly session?: string
  readonly role: GrantRole
  /** The owner's name for it. */
  readonly label: string
  readonly createdMs: number
  readonly expiresMs: number
  /** The owner's name when it was created. */
  readonly ownerName: string
  /** Account that holds it; absent until its share link is redeemed. */
  readonly holder?: { readonly account: string; readonly name: string }
}

/** A grant as its holder sees it. */
export interface HeldGrant {
  readonly grant: string
  readonly sandbox: string
  /** Absent when only one session is shared. */
  readonly sandboxName?: string
  readonly session?: string
  readonly role: GrantRole
  readonly ownerName: string
  readonly expiresMs: number
}

export function mintGrantId(sandbox: string, random: (bytes: Uint8Array) => Uint8Array): string {
  return `${sandbox}.${encodeId(random(new Uint8Array(GRANT_BYTES)))}`
}

/** The sandbox of a grant, or undefined when the id is malformed. */
export function sandboxOfGrant(grant: string): string | undefined {
  return GRANT_ID.exec(grant)?.[1]
}

/** Parses the fragment of a share link. */
export function parseLink(text: string): { readonly grant: string; readonly secret: string } | undefined {
  const [, grant, secret] = LINK.exec(text) ?? []
  return grant === undefined || secret === undefined ? undefined : { grant, secret }
}

/** A warning for the owner who shares with this role; undefined when there is none. */
export function noticeOf(role: GrantRole): string | undefined {
  return role === 'collaborator'
    ? 'A collaborator has a shell, and can read and change every file in the sandbox'
    : undefined
}

/** One error for used, expired, revoked and forged share links, so that they cannot be distinguished. */
export function linkSpent(): SandwireError {
  return new SandwireError('link_spent', 'Cannot use the share link: it was used, has expired or was revoked')
}

export function noSuchGrant(): SandwireError {
  return new SandwireError('not_found', 'No grant has this id')
}

/** Result of redeeming a share link. `bind`: the account gets the grant. `held`: it has it. `own`: it owns the sandbox. */
export type Redemption = 'bind' | 'held' | 'own' | 'spent'

/** Decides a redemption. `found` is the grant with the link's id, `linkHash` the hash of the link's secret. */
export function decideRedemption(
  found: (GrantRecord & { readonly linkHash?: string }) | undefined,
  redeemer: {
    readonly owner: string
    readonly account: string
    readonly isSecretRight: (hash: string) => boolean
    readonly nowMs: number
  },
): Redemption {
  if (found === undefined || found.expiresMs <= redeemer.nowMs) return 'spent'
  // The hash is deleted once the grant is held, so the secret cannot be checked again.
  if (found.holder !== undefined) return found.holder.account === redeemer.account ? 'held' : 'spent'
  if (found.linkHash === undefined || !redeemer.isSecretRight(found.linkHash)) return 'spent'
  return redeemer.account === redeemer.owner ? 'own' : 'bind'
}

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
