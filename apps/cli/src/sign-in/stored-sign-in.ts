import { SandwireError } from '@sandwire/protocol'
import { SignedOutError } from '../errors/errors.ts'
import { createApi } from '../server/api.ts'
import type { CredentialStore } from './credential-store.ts'
import { type Credential, endpointsOf, isSameSignIn, renewCredential } from './credential.ts'
import { openSignInLock } from './sign-in-lock.ts'
import { printable } from '../text/printable.ts'

/** A bearer is renewed this long before its expiry, so that it is still valid when a request arrives. */
const RENEW_BEFORE_MS = 30_000

/** True if the bearer need not be renewed. Without a refresh token it is used until it expires. */
function isFresh({ expiresMs, renewal }: Credential, nowMs: number): boolean {
  const beforeMs = renewal?.refreshToken === undefined ? 0 : RENEW_BEFORE_MS
  return expiresMs === undefined || expiresMs - beforeMs > nowMs
}

async function renew(store: CredentialStore, old: Credential): Promise<Credential> {
  const { origin, renewal } = old
  if (renewal?.refreshToken === undefined) {
    store.remove(origin)
    throw new SignedOutError(
      renewal === undefined ? 'the guest access has ended' : 'the sign-in has expired and cannot be renewed',
    )
  }
  // Loaded on demand, because few requests need it.
  const { toSandwireError, oauthErrorOf, refreshTokens } = await import('./issuer-client.ts')
  try {
    const tokens = await refreshTokens(endpointsOf(renewal), renewal.refreshToken, renewal.resource)
    const renewed = renewCredential({ origin, renewal }, tokens, Date.now())
    if (renewed === undefined) {
      store.remove(origin)
      throw new SignedOutError('the issuer did not renew the token that the server needs')
    }
    // Stored before it is used: the old refresh token may be invalid already.
    store.write(renewed)
    return renewed
  } catch (error) {
    if (oauthErrorOf(error) !== 'invalid_grant') throw toSandwireError(error, 'Cannot renew the sign-in')
    const now = store.read(origin)
    // Another process renewed it meanwhile.
    if (now !== undefined && now.renewal?.refreshToken !== renewal.refreshToken) return now
    store.remove(origin)
    throw new SignedOutError('the issuer no longer accepts this sign-in')
  }
}

/** The bearer for this origin; throws `SignedOutError` if there is none. */
export async function requireStoredBearer(store: CredentialStore, origin: string): Promise<string> {
  const bearer = await storedBearer(store, origin)
  if (bearer === undefined) throw new SignedOutError('logout was run meanwhile')
  return bearer
}

/**
 * The bearer for this origin, renewed if it is about to expire; undefined without a sign-in. Of concurrent processes, one
 * uses the refresh token and the others use its result. Throws `SignedOutError` when the sign-in has ended, and
 * `issuer_unavailable` when the issuer cannot be reached.
 */
export async function storedBearer(store: CredentialStore, origin: string): Promise<string | undefined> {
  const found = store.read(origin)
  if (found === undefined || isFresh(found, Date.now())) return found?.bearer
  using _lock = await openSignInLock(store, origin)
  const current = store.read(origin)
  if (current === undefined) throw new SignedOutError('logout was run meanwhile')
  if (isFresh(current, Date.now())) return current.bearer
  try {
    return (await renew(store, current)).bearer
  } catch (error) {
    const hasExpired = current.expiresMs !== undefined && current.expiresMs <= Date.now()
    // While the issuer is unreachable, the bearer is used until it expires.
    if (!hasExpired && error instanceof SandwireError && error.code === 'issuer_unavailable')
      return current.bearer
    throw error
  }
}

/**
 * Renews a bearer that the server refused before its expiry, unless another process did. False if it cannot be renewed.
 * Throws like `storedBearer`.
 */
export async function renewRefused(
  store: CredentialStore,
  origin: string,
  refused: string,
): Promise<boolean> {
  if (store.read(origin)?.renewal?.refreshToken === undefined) return false
  using _lock = await openSignInLock(store, origin)
  const current = store.read(origin)
  if (current === undefined) throw new SignedOutError('logout was run meanwhile')
  if (current.bearer === refused) await renew(store, current)
  return true
}

/** Result of notifying the server or the issuer of a sign-out. */
type NotifyResult =
  | { readonly kind: 'notified' }
  | { readonly kind: 'notNeeded' }
  | { readonly kind: 'failed'; readonly reason: string }

async function notify(send: () => Promise<unknown>): Promise<NotifyResult> {
  try {
    await send()
    return { kind: 'notified' }
  } catch (error) {
    return { kind: 'failed', reason: printable(SandwireError.from(error).message) }
  }
}

/** Revokes the refresh token of a sign-in. */
export async function revokeAtIssuer({ renewal }: Credential): Promise<NotifyResult> {
  if (renewal?.refreshToken === undefined || renewal.revocationEndpoint === undefined)
    return { kind: 'notNeeded' }
  const { refreshToken } = renewal
  const { toSandwireError, revokeToken } = await import('./issuer-client.ts')
  return await notify(async () => {
    try {
      await revokeToken(endpointsOf(renewal), refreshToken)
    } catch (error) {
      throw toSandwireError(error, 'Cannot revoke the sign-in')
    }
  })
}

/** Signs out at the server, with `bearer`, and at the issuer. The sign-in is no longer in the store. */
export async function endSignIn(
  credential: Credential,
  bearer: string,
): Promise<{ readonly server: NotifyResult; readonly issuer: NotifyResult }> {
  const api = createApi({ origin: credential.origin, bearer: () => Promise.resolve(bearer) })
  const server = await notify(() => api.request('POST', '/api/signout'))
  return { server, issuer: await revokeAtIssuer(credential) }
}

/** Stores a sign-in under the lock that renewals take; returns the one that it replaced. */
async function swap(store: CredentialStore, credential: Credential): Promise<Credential | undefined> {
  store.prepare()
  using _lock = await openSignInLock(store, credential.origin)
  let old: Credential | undefined
  try {
    old = store.read(credential.origin)
  } catch {
    // An unreadable file has no token to revoke.
  }
  store.write(credential)
  return old
}

/**
 * Stores a sign-in and signs out the one that it replaces, whose tokens are lost afterwards. Returns what failed at the
 * server or the issuer.
 */
export async function replaceSignIn(
  store: CredentialStore,
  credential: Credential,
): Promise<readonly string[]> {
  // The server accepts only a valid bearer.
  const bearer = await storedBearer(store, credential.origin).catch(() => undefined)
  const old = await swap(store, credential)
  // Signing out the same session at the issuer would end the new sign-in too.
  if (old === undefined || isSameSignIn(old, credential)) return []
  const { server, issuer } = await endSignIn(old, bearer ?? old.bearer)
  return [
    ...(server.kind === 'failed' ? [`the server could not be notified: ${server.reason}`] : []),
    ...(issuer.kind === 'failed' ? [`the issuer could not be notified: ${issuer.reason}`] : []),
  ]
}
