import { mintSecret } from '../bytes.ts'
import type { HeldGrant } from '../sandbox/grants.ts'
import type { Identity, Scope } from './authenticator.ts'
import { mintCookie, type SignIn } from './browser-cookie.ts'
import { GUEST_LOGIN } from './guest-name.ts'
import { mintGuestToken } from './guest-token.ts'

/** A new sign-in of a guest for a grant. One who is here already keeps what they have. */
function toSignIn(name: string, held: HeldGrant, before: Identity | undefined, nowMs: number): SignIn {
  const needed: readonly Scope[] = held.role === 'collaborator' ? ['connect', 'exec'] : ['connect']
  return {
    login: GUEST_LOGIN + mintSecret(),
    name,
    scopes: [...new Set([...needed, ...(before?.scopes ?? [])])],
    issuer: null,
    voucher: null,
    createdMs: nowMs,
    expiresMs: Math.max(held.expiresMs, before?.expiresMs ?? 0),
  }
}

/** A guest who holds a grant, and what they were before. */
export interface Guest {
  readonly account: string
  readonly name: string
  readonly held: HeldGrant
  readonly before: Identity | undefined
  readonly isBrowser: boolean
}

/** Makes a guest's credential: a cookie for a browser, a token for anything else. */
export async function admitGuest(
  { account, name, held, before, isBrowser }: Guest,
  signIn: (account: string, signIn: SignIn, hash: string) => Promise<void>,
  nowMs: number,
): Promise<{ readonly cookie?: string; readonly token?: string }> {
  const facts = toSignIn(name, held, before, nowMs)
  if (isBrowser) {
    const { header, hash } = await mintCookie(account, facts.expiresMs - nowMs)
    await signIn(account, facts, hash)
    return { cookie: header }
  }
  const { token, hash } = await mintGuestToken(account)
  await signIn(account, facts, hash)
  return { token }
}
