import { SandwireError } from '@sandwire/protocol'
import { createApi } from '../server/api.ts'
import type { CredentialStore } from './credential-store.ts'
import { type Credential, endpointsOf, isSameSignIn, renewCredential } from './credential.ts'
import { openSignInLock } from './sign-in-lock.ts'
import { printable } from '../text/printable.ts'

/** So long before its end a bearer is renewed: a request on its way must not arrive too late. */
const RENEW_BEFORE_MS = 30_000

/** Good for now. What nobody renews is good to its very end. */
function isFresh({ expiresMs, renewal }: Credential, nowMs: number): boolean {
  const beforeMs = renewal?.refreshToken === undefined ? 0 : RENEW_BEFORE_MS
  return expiresMs === undefined || expiresMs - beforeMs > nowMs
}

/** How the end of a sign-in is told. */
export const SIGNED_OUT = 'Signed out'

function signedOut(why: string): SandwireError {
  return new SandwireError('unauthorized', `${SIGNED_OUT}: ${why}`)
}

async function renew(store: CredentialStore, old: Credential): Promise<Credential> {
  const { origin, renewal } = old
  if (renewal?.refreshToken === undefined) {
    store.remove(origin)
    throw signedOut(
      renewal === undefined ? 'the guest access has ended' : 'the sign-in has ended and cannot be renewed',
    )
  }
  // Loaded here, because few requests need it.
  const { toSandwireError, oauthErrorOf, refreshTokens } = await import('./issuer-client.ts')
  try {
    const tokens = await refreshTokens(endpointsOf(renewal), renewal.refreshToken, renewal.resource)
    const renewed = renewCredential({ origin, renewal }, tokens, Date.now())
    if (renewed === undefined) {
      store.remove(origin)
      throw signedOut('the issuer renews only a part of the sign-in')
    }
    // Before it is used: the old refresh token may be dead already.
    store.write(renewed)
    return renewed
  } catch (error) {
    if (oauthErrorOf(error) !== 'invalid_grant') throw toSandwireError(error, 'Cannot renew the sign-in')
    const now = store.read(origin)
    // This process was away for so long that its lock was broken, and another one renewed.
    if (now !== undefined && now.renewal?.refreshToken !== renewal.refreshToken) return now
    store.remove(origin)
    throw signedOut('the issuer no longer accepts this sign-in')
  }
}

/** The bearer of somebody who is signed in at this origin; throws `unauthorized` when they no longer are. */
export async function requireStoredBearer(store: CredentialStore, origin: string): Promise<string> {
  const bearer = await storedBearer(store, origin)
  if (bearer === undefined) throw signedOut('somebody ran logout')
  return bearer
}

/**
 * The bearer for this origin, renewed when it is about to end; undefined when nobody is signed in there. However many
 * processes ask at once, one of them uses the refresh token and the others see what it got. Throws `unauthorized` when
 * the sign-in is over, and `issuer_unavailable` when the issuer cannot be asked.
 */
export async function storedBearer(store: CredentialStore, origin: string): Promise<string | undefined> {
  const found = store.read(origin)
  if (found === undefined || isFresh(found, Date.now())) return found?.bearer
  using _lock = await openSignInLock(store, origin)
  const current = store.read(origin)
  if (current === undefined) throw signedOut('somebody ran logout')
  if (isFresh(current, Date.now())) return current.bearer
  try {
    return (await renew(store, current)).bearer
  } catch (error) {
    const isOver = current.expiresMs !== undefined && current.expiresMs <= Date.now()
    // What is still good for a moment is better than nothing while the issuer is away.
    if (!isOver && error instanceof SandwireError && error.code === 'issuer_unavailable')
      return current.bearer
    throw error
  }
}

/**
 * Renews a bearer that the server refused before its end, unless another process has done so. Whether there is another one
 * to show now; false when it cannot be renewed. Throws like `storedBearer`.
 */
export async function renewRefused(
  store: CredentialStore,
  origin: string,
  refused: string,
): Promise<boolean> {
  if (store.read(origin)?.renewal?.refreshToken === undefined) return false
  using _lock = await openSignInLock(store, origin)
  const current = store.read(origin)
  if (current === undefined) throw signedOut('somebody ran logout')
  if (current.bearer === refused) await renew(store, current)
  return true
}

/** What came of telling somebody. */
export type Told =
  | { readonly is: 'told' }
  | { readonly is: 'notNeeded' }
  | { readonly is: 'untold'; readonly why: string }

async function tell(act: () => Promise<unknown>): Promise<Told> {
  try {
    await act()
    return { is: 'told' }
  } catch (error) {
    return { is: 'untold', why: printable(SandwireError.from(error).message) }
  }
}

async function revokeAtIssuer({ renewal }: Credential): Promise<Told> {
  if (renewal?.refreshToken === undefined || renewal.revocationEndpoint === undefined)
    return { is: 'notNeeded' }
  const { refreshToken } = renewal
  const { toSandwireError, revokeToken } = await import('./issuer-client.ts')
  return await tell(async () => {
    try {
      await revokeToken(endpointsOf(renewal), refreshToken)
    } catch (error) {
      throw toSandwireError(error, 'Cannot withdraw the sign-in')
    }
  })
}

/** Ends a sign-in that is not in the store any more: at its server, which is shown `bearer`, and at its issuer. */
export async function endSignIn(
  credential: Credential,
  bearer: string,
): Promise<{ readonly server: Told; readonly issuer: Told }> {
  const api = createApi({ origin: credential.origin, bearer: () => Promise.resolve(bearer) })
  const server = await tell(() => api.request('POST', '/api/signout'))
  return { server, issuer: await revokeAtIssuer(credential) }
}

/** Puts a sign-in where another may be, which is returned; nobody else renews that one meanwhile. */
async function exchange(store: CredentialStore, credential: Credential): Promise<Credential | undefined> {
  store.prepare()
  using _lock = await openSignInLock(store, credential.origin)
  let old: Credential | undefined
  try {
    old = store.read(credential.origin)
  } catch {
    // It is not understood, so there is nothing in it that anybody could be told.
  }
  store.write(credential)
  return old
}

/**
 * Stores a sign-in, and ends the one that it replaces: nobody could do that afterwards. Returns why others could not be told;
 * empty when they were, or need not be.
 */
export async function replaceSignIn(
  store: CredentialStore,
  credential: Credential,
): Promise<readonly string[]> {
  // The server takes only a bearer that has not ended.
  const bearer = await storedBearer(store, credential.origin).catch(() => undefined)
  const old = await exchange(store, credential)
  // Where the issuer goes on with the same sign-in, its end would be the end of the new one.
  if (old === undefined || isSameSignIn(old, credential)) return []
  const { server, issuer } = await endSignIn(old, bearer ?? old.bearer)
  return [
    ...(server.is === 'untold' ? [`the server could not be told: ${server.why}`] : []),
    ...(issuer.is === 'untold' ? [`the issuer could not be told: ${issuer.why}`] : []),
  ]
}
