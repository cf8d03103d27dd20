import { type LockFile, openLockFile } from '@sandwire/lock-file'
import { SandwireError } from '@sandwire/protocol'
import type { CredentialStore } from './credential-store.ts'

/** Longer than any process holds the lock: a request to an issuer has a shorter limit. */
const TIMEOUT_MS = 120_000

/** Waits until no other process changes the sign-in of a server; disposing releases the lock. */
export async function openSignInLock(store: CredentialStore, origin: string): Promise<LockFile> {
  const lock = await openLockFile(`${store.fileOf(origin)}.lock`, TIMEOUT_MS)
  if (lock !== undefined) return lock
  throw new SandwireError('internal', 'Cannot renew the sign-in: another process is still renewing it')
}
