import { normalizeName, type Role, SandwireError } from '@sandwire/protocol'

/**
 * What a credential may be used for; access to a sandbox is checked separately. `connect`: list and join. `exec`: run any
 * command. `admin`: create, share, stop and destroy. `operator`: manage the server; no issuer grants it.
 */
export const SCOPES = ['connect', 'exec', 'admin', 'operator'] as const
export type Scope = (typeof SCOPES)[number]

/** The one upgrade that a ticket is valid for. */
export interface TicketBinding {
  readonly sandbox: string
  /** Absent: the ticket starts a process. */
  readonly session?: string
  readonly role: Role
}

/** The authenticated caller of a request. */
export interface Identity {
  /** Account id: `local`, or derived from issuer and subject. */
  readonly account: string
  /** Display name. */
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Browsers send cookies on their own, so a cookie also needs a check of the request's origin. */
  readonly via: 'bearer' | 'cookie' | 'service cookie' | 'ticket'
  /** Id of the sign-in that the credential belongs to; signing out revokes everything authorized by it. */
  readonly login?: string
  /** Id of this token, if its issuer does not name the sign-in; `login` then stands for all such tokens of the account. */
  readonly token?: string
  /** When the credential was issued; absent if unknown. */
  readonly issuedMs?: number
  /** When the credential expires; absent if it does not. */
  readonly expiresMs?: number
  readonly ticket?: TicketBinding
}

/** Identifies the caller. Returns undefined if its kind of credential is absent; throws if it is present and invalid. */
export interface Authenticator {
  authenticate(headers: Headers): Promise<Identity | undefined>
}

export function unauthorized(problem: string, cause?: unknown): SandwireError {
  return new SandwireError('unauthorized', `Cannot authenticate: ${problem}`, { cause })
}

/** The sign-in or the account was ended. The CLI checks the reason after a new sign-in, when clocks disagree. */
export function signInEnded(): SandwireError {
  return new SandwireError('unauthorized', 'Cannot authenticate: the sign-in has ended', {
    details: { reason: 'sign_in_ended' },
  })
}

/** How far an issuer's clock may be ahead of ours. Signing in again takes longer than this. */
const ISSUED_SKEW_MS = 5_000

/** True if a credential was issued before its sign-in ended. True as well if its time of issue is unknown. */
export function isIssuedBefore(endedMs: number, issuedMs: number | undefined): boolean {
  return issuedMs === undefined || issuedMs <= endedMs + ISSUED_SKEW_MS
}

/** Display name of a guest who gives none. */
export const NAMELESS_GUEST = 'guest'
const MARK = ' (guest)'
/** Leaves room for the mark. */
export const MAX_GUEST_NAME_CHARS = 64 - MARK.length

/** The displayed name of a guest. Guests choose their names, so each is marked to prevent impersonation. */
export function guestName(chosen: string): string {
  const unmarked = chosen.endsWith(MARK) ? chosen.slice(0, -MARK.length) : chosen
  const name = normalizeName(unmarked, MAX_GUEST_NAME_CHARS)
  return name === '' || name === NAMELESS_GUEST ? NAMELESS_GUEST : name + MARK
}

/** Prefix of the login ids of guests. */
export const GUEST_LOGIN = 'guest-'

/** True for the sign-in of a guest, who has access only to what was shared with them. */
export function isGuestLogin(login: string | undefined): boolean {
  return login?.startsWith(GUEST_LOGIN) === true
}
