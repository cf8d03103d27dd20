import { mintSecret, sha256Hex } from '../bytes.ts'
import type { HeldGrant } from '../sandbox/grants.ts'
import type { AccountIds } from './account-id.ts'
import { mintCookie, type SignIn } from './browser-sign-in.ts'
import {
  type Authenticator,
  GUEST_LOGIN,
  guestName,
  type Identity,
  type Scope,
  unauthorized,
} from './identity.ts'

/** The scheme is case-insensitive (RFC 9110, section 11.1). */
const GUEST_TOKEN = /^bearer +(swg_([a-z0-9]{1,64})\.[A-Za-z0-9_-]{43})$/i
const GUEST_TOKEN_PREFIX = /^bearer +swg_/i

async function mintGuestToken(account: string): Promise<{ token: string; hash: string }> {
  const token = `swg_${account}.${mintSecret()}`
  return { token, hash: await sha256Hex(token) }
}

export interface GuestDependencies {
  readonly accounts: Pick<AccountIds, 'isMinted'>
  /** Looks the sign-in up in the account's object. */
  readonly find: (account: string, hash: string) => Promise<SignIn | null>
}

/** Authenticates guest tokens, which are issued for share links. */
export function createGuestAuthenticator({ accounts, find }: GuestDependencies): Authenticator {
  return {
    async authenticate(headers) {
      const header = headers.get('authorization')
      if (header === null || !GUEST_TOKEN_PREFIX.test(header)) return undefined
      const [, token, account] = GUEST_TOKEN.exec(header) ?? []
      const isOurs = token !== undefined && account !== undefined && (await accounts.isMinted(account))
      const signIn = isOurs ? await find(account, await sha256Hex(token)) : null
      if (account === undefined || signIn === null) throw unauthorized('the token is not accepted')
      const { name, scopes, login, expiresMs } = signIn
      return { account, name: guestName(name), scopes, via: 'bearer', login, expiresMs }
    },
  }
}

/** A guest who redeemed a share link. */
export interface Guest {
  readonly account: string
  readonly name: string
  readonly held: HeldGrant
  /** The guest's identity before, whose scopes and lifetime are kept. */
  readonly previous: Identity | undefined
  readonly isBrowser: boolean
}

function toSignIn({ name, held, previous }: Guest, nowMs: number): SignIn {
  const needed: readonly Scope[] = held.role === 'collaborator' ? ['connect', 'exec'] : ['connect']
  return {
    login: GUEST_LOGIN + mintSecret(),
    name,
    scopes: [...new Set([...needed, ...(previous?.scopes ?? [])])],
    issuer: null,
    issuerBinding: null,
    createdMs: nowMs,
    expiresMs: Math.max(held.expiresMs, previous?.expiresMs ?? 0),
  }
}

/** Signs a guest in: with a cookie for a browser, with a token otherwise. */
export async function signInGuest(
  guest: Guest,
  store: (account: string, signIn: SignIn, hash: string) => Promise<void>,
  nowMs: number,
): Promise<{ readonly cookie?: string; readonly token?: string }> {
  const { account, isBrowser } = guest
  const signIn = toSignIn(guest, nowMs)
  if (isBrowser) {
    const { header, hash } = await mintCookie(account, signIn.expiresMs - nowMs)
    await store(account, signIn, hash)
    return { cookie: header }
  }
  const { token, hash } = await mintGuestToken(account)
  await store(account, signIn, hash)
  return { token }
}
