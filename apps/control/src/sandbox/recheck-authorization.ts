import { SandwireError } from '@sandwire/protocol'
import { signInEnded } from '../auth/identity.ts'
import type { Log } from '../log.ts'
import { accessOf, requireAccess } from './access.ts'
import type { AttachCall } from './call.ts'
import { noSuchSandbox } from './not-found.ts'
import type { Revocation } from './revocation.ts'
import { REAUTHORIZE_MS } from './sessions.ts'
import type { SandboxStore } from './store.ts'

/** A plain connection and what authorizes it. It has the session that it started to itself, and ends with it. */
export interface PlainConnection {
  readonly session: string
  readonly identity: string
  /** Grant that authorizes it; absent for the owner. */
  readonly grant?: string
  readonly login?: string
  /** The token itself, where `login` covers several tokens. */
  readonly token?: string
  readonly issuedMs?: number
  /** The account stores its sign-in and can look it up; otherwise only the token counts. */
  readonly hasStoredSignIn: boolean
}

/** A plain connection and when its authorization was last found to be valid. */
export interface CheckedConnection extends PlainConnection {
  readonly checkedMs: number
}

/** True when something that authorizes a connection can end while it is open. */
function canEnd({ login, grant }: Pick<PlainConnection, 'login' | 'grant'>): boolean {
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
    connection: Pick<PlainConnection, 'login' | 'token' | 'issuedMs' | 'hasStoredSignIn'>,
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
 * Rechecks the authorization of plain connections. Other connections are closed after a while and authenticate again when they
 * resume; a plain one cannot resume, so control stores what authorizes it and rechecks that.
 */
export class RecheckAuthorization {
  readonly #deps: RecheckDependencies

  constructor(deps: RecheckDependencies) {
    this.#deps = deps
  }

  /** What to store about an attach; undefined when its authorization cannot end. Call it before the connection is opened. */
  async prepare(call: AttachCall, grant: string | undefined): Promise<PlainConnection | undefined> {
    const { identity, login, token, issuedMs, session, dialect } = call
    const authorizedBy = {
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
    }
    if (dialect !== 'plain' || session === undefined || !canEnd(authorizedBy)) return undefined
    const { store, credentials, pollMs } = this.#deps
    if (store.plainConnections.isFull)
      throw new SandwireError('rate_limited', 'Too many plain connections are open', { retryAfterMs: pollMs })
    const hasStoredSignIn = login !== undefined && (await credentials.hasSignIn(identity, login))
    return {
      session,
      identity,
      hasStoredSignIn,
      ...authorizedBy,
      ...(token === undefined ? {} : { token }),
      ...(issuedMs === undefined ? {} : { issuedMs }),
    }
  }

  /** Stores a connection that was opened. */
  add(connection: PlainConnection | undefined): void {
    if (connection !== undefined) this.#deps.store.plainConnections.add(connection, this.#deps.nowMs())
  }

  /** Rechecks every connection that needs it, and closes those that are no longer authorized. */
  async onAlarm(): Promise<void> {
    const { store, nowMs, pollMs } = this.#deps
    const at = { nowMs: nowMs(), maxAgeMs: REAUTHORIZE_MS, pollMs }
    const due = store.plainConnections.all().filter((connection) => needsRecheck(connection, at))
    await Promise.all(due.map((connection) => this.#recheck(connection)))
  }

  async #recheck(connection: CheckedConnection): Promise<void> {
    const { store, revocation, nowMs, log } = this.#deps
    const { session, identity, login, grant } = connection
    try {
      const refusal = this.#refuseAccess(connection) ?? (await this.#refuseCredential(connection))
      if (refusal === undefined) return store.plainConnections.setChecked(session, nowMs())
      log.warn('reauthorize_refused', { session, code: refusal.code })
      const disconnected = revocation.disconnect({
        identity,
        session,
        ...(login === undefined ? {} : { login }),
        ...(grant === undefined ? {} : { grant }),
      })
      // In the turn in which the request to close it was stored.
      store.plainConnections.remove(session)
      await disconnected
    } catch (caught) {
      // A connection is not closed because an account does not respond; the next poll checks again.
      const { code } = SandwireError.from(caught)
      log.warn('reauthorize_failed', { session, code })
    }
  }

  /** Why its grant no longer authorizes it. Other grants that the account got since then do not count. */
  #refuseAccess({ identity, grant }: CheckedConnection): SandwireError | undefined {
    const { store, nowMs } = this.#deps
    const record = store.read()
    if (record === undefined) return noSuchSandbox()
    const grants = store.sharing.grantsOf(identity).filter(({ id }) => id === grant)
    try {
      requireAccess(accessOf({ owner: record.owner, grants }, identity, { nowMs: nowMs() }), 'work')
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
