import { SandwireError } from '@sandwire/protocol'
import { signInEnded } from '../auth/identity.ts'
import type { Log } from '../log.ts'
import { accessOf, type Need, requireAccess } from './access.ts'
import type { AttachCall } from './call.ts'
import { noSuchSandbox } from './not-found.ts'
import type { Revocation } from './revocation.ts'
import { REAUTHORIZE_MS } from './sessions.ts'
import type { SandboxStore } from './store.ts'

/** A connection whose client cannot authenticate again while it is open, and what authorizes it. */
export interface RecheckedConnection {
  readonly session: string
  readonly identity: string
  /** Access that it needs. */
  readonly need: Need
  /** Grant that authorizes it; absent for the owner. */
  readonly grant?: string
  readonly login?: string
  /** The token itself, where `login` covers several tokens. */
  readonly token?: string
  readonly issuedMs?: number
  /** The account stores its sign-in and can look it up; otherwise only the token counts. */
  readonly hasStoredSignIn: boolean
}

/** A connection and when its authorization was last found to be valid. */
export interface CheckedConnection extends RecheckedConnection {
  readonly checkedMs: number
}

/** True when something that authorizes a connection can end while it is open. */
function canEnd({ login, grant }: Pick<RecheckedConnection, 'login' | 'grant'>): boolean {
  return login !== undefined || grant !== undefined
}

/** True when the authorization must be rechecked now, so that the check is never older than `maxAgeMs`. */
export function needsRecheck(
  { checkedMs }: Pick<CheckedConnection, 'checkedMs'>,
  { nowMs, maxAgeMs, pollMs }: { readonly nowMs: number; readonly maxAgeMs: number; readonly pollMs: number },
): boolean {
  // Two polls: one may be late. A check in the future means that the clock was set back.
  return nowMs + 2 * pollMs >= checkedMs + maxAgeMs || nowMs < checkedMs
}

/** State of the credentials, from the account object. */
export interface AccountCredentials {
  /** True when the account stores this sign-in, as those of browsers and guests. */
  hasSignIn(account: string, login: string): Promise<boolean>
  /** True when the credential of a connection would still be accepted. */
  accepts(
    account: string,
    connection: Pick<RecheckedConnection, 'login' | 'token' | 'issuedMs' | 'hasStoredSignIn'>,
  ): Promise<boolean>
}

export interface RecheckDependencies {
  readonly store: SandboxStore
  readonly revocation: Pick<Revocation, 'disconnect'>
  readonly credentials: AccountCredentials
  /** Interval of the alarm. */
  readonly pollMs: number
  readonly nowMs: () => number
  readonly log: Log
}

/**
 * Rechecks the authorization of connections in the plain dialect and of the compat API. Other connections are closed after a
 * while and authenticate again when they resume; these cannot, so control stores what authorizes them and rechecks that.
 */
export class RecheckAuthorization {
  readonly #deps: RecheckDependencies

  constructor(deps: RecheckDependencies) {
    this.#deps = deps
  }

  /** What to store about an attach; undefined when its authorization cannot end. Call it before the connection is opened. */
  async prepare(call: AttachCall, grant: string | undefined): Promise<RecheckedConnection | undefined> {
    const { identity, login, token, issuedMs, joins, session = joins, dialect, compat } = call
    const authorizedBy = {
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
    }
    const isRechecked = dialect === 'plain' || compat !== undefined
    if (!isRechecked || session === undefined || !canEnd(authorizedBy)) return undefined
    const { store, credentials, pollMs } = this.#deps
    if (store.recheckedConnections.isFull)
      throw new SandwireError('rate_limited', 'Too many connections are open that cannot resume', {
        retryAfterMs: pollMs,
      })
    const hasStoredSignIn = login !== undefined && (await credentials.hasSignIn(identity, login))
    return {
      session,
      identity,
      need: joins === undefined ? 'work' : 'watch',
      hasStoredSignIn,
      ...authorizedBy,
      ...(token === undefined ? {} : { token }),
      ...(issuedMs === undefined ? {} : { issuedMs }),
    }
  }

  /** Stores a connection that was opened. */
  add(connection: RecheckedConnection | undefined): void {
    if (connection !== undefined) this.#deps.store.recheckedConnections.add(connection, this.#deps.nowMs())
  }

  /** Rechecks every connection that needs it, and closes those that are no longer authorized. */
  async onAlarm(): Promise<void> {
    const { store, nowMs, pollMs } = this.#deps
    const at = { nowMs: nowMs(), maxAgeMs: REAUTHORIZE_MS, pollMs }
    const due = store.recheckedConnections.all().filter((connection) => needsRecheck(connection, at))
    await Promise.all(due.map((connection) => this.#recheck(connection)))
  }

  async #recheck(connection: CheckedConnection): Promise<void> {
    const { store, revocation, nowMs, log } = this.#deps
    const { session, identity, login, grant } = connection
    try {
      const refusal = this.#refuseAccess(connection) ?? (await this.#refuseCredential(connection))
      if (refusal === undefined) return store.recheckedConnections.setChecked(connection, nowMs())
      log.warn('reauthorize_refused', { session, code: refusal.code })
      const disconnected = revocation.disconnect({
        identity,
        session,
        ...(login === undefined ? {} : { login }),
        ...(grant === undefined ? {} : { grant }),
      })
      // In the turn in which the request to close it was stored.
      store.recheckedConnections.remove(connection)
      await disconnected
    } catch (caught) {
      // A connection is not closed because an account does not respond; the next poll checks again.
      const { code } = SandwireError.from(caught)
      log.warn('reauthorize_failed', { session, code })
    }
  }

  /** Why its grant no longer authorizes it. Other grants that the account got since then do not count. */
  #refuseAccess({ identity, session, need, grant }: CheckedConnection): SandwireError | undefined {
    const { store, nowMs } = this.#deps
    const record = store.read()
    if (record === undefined) return noSuchSandbox()
    const grants = store.sharing.grantsOf(identity).filter(({ id }) => id === grant)
    try {
      const access = accessOf({ owner: record.owner, grants }, identity, { session, nowMs: nowMs() })
      requireAccess(access, need)
      return undefined
    } catch (caught) {
      return SandwireError.from(caught)
    }
  }

  async #refuseCredential(connection: CheckedConnection): Promise<SandwireError | undefined> {
    const { credentials } = this.#deps
    if (connection.login === undefined || (await credentials.accepts(connection.identity, connection)))
      return undefined
    return signInEnded()
  }
}
