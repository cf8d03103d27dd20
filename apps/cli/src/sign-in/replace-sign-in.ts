import { type Credential, isSameSignIn } from './credential.ts'
import type { CredentialStore } from './credential-store.ts'
import { endSignIn } from './end-sign-in.ts'
import { openSignInLock } from './sign-in-lock.ts'
import { storedBearer } from './stored-bearer.ts'

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
