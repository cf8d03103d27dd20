import { SandwireError } from '@sandwire/protocol'
import { signInEnded } from '../auth/identity.ts'
import type { Log } from '../log.ts'
import { accessOf, requireAccess } from './access.ts'
import type { AttachCall } from './call.ts'
import type { Cutting } from './cutting.ts'
import { noSuchSandbox } from './missing.ts'
import { canEnd, type CheckedStay, isDue, type PlainStay } from './plain-stays.ts'
import { REAUTHORIZE_MS } from './sessions.ts'
import type { SandboxStore } from './store.ts'

/** What an account says of the credentials of its people. */
export interface Registrar {
  /** Whether a sign-in is one that the account keeps, as those of browsers and guests. */
  keeps(account: string, login: string): Promise<boolean>
  /** Whether what somebody came with would still be let in. */
  welcomes(
    account: string,
    stay: Pick<PlainStay, 'login' | 'token' | 'issuedMs' | 'isKept'>,
  ): Promise<boolean>
}

export interface ReauthorizingDependencies {
  readonly store: SandboxStore
  readonly cutting: Pick<Cutting, 'cut'>
  readonly registrar: Registrar
  /** Between two looks. */
  readonly lookMs: number
  readonly nowMs: () => number
  readonly log: Log
}

/**
 * Asks again whether plain connections may stay. Others are closed after a while and show their credential when they resume;
 * a plain one cannot come back, so control remembers what it came with and looks for that itself.
 */
export class Reauthorizing {
  readonly #deps: ReauthorizingDependencies

  constructor(deps: ReauthorizingDependencies) {
    this.#deps = deps
  }

  /** What to remember of an attach; undefined when nothing of it can end. Call it before the way is opened. */
  async foresee(call: AttachCall, grant: string | undefined): Promise<PlainStay | undefined> {
    const { identity, login, token, issuedMs, session, dialect } = call
    const hangsOn = { ...(login === undefined ? {} : { login }), ...(grant === undefined ? {} : { grant }) }
    if (dialect !== 'plain' || session === undefined || !canEnd(hangsOn)) return undefined
    const { store, registrar, lookMs } = this.#deps
    if (store.stays.isFull)
      throw new SandwireError('rate_limited', 'Cannot take more plain connections now', {
        retryAfterMs: lookMs,
      })
    const isKept = login !== undefined && (await registrar.keeps(identity, login))
    return {
      session,
      identity,
      isKept,
      ...hangsOn,
      ...(token === undefined ? {} : { token }),
      ...(issuedMs === undefined ? {} : { issuedMs }),
    }
  }

  /** The way is open. */
  remember(stay: PlainStay | undefined): void {
    if (stay !== undefined) this.#deps.store.stays.add(stay, this.#deps.nowMs())
  }

  /** Looks at every right that is due, and cuts who has lost theirs. */
  async ring(): Promise<void> {
    const { store, nowMs, lookMs } = this.#deps
    const at = { nowMs: nowMs(), mostMs: REAUTHORIZE_MS, lookMs }
    const due = store.stays.all().filter((stay) => isDue(stay, at))
    await Promise.all(due.map((stay) => this.#look(stay)))
  }

  async #look(stay: CheckedStay): Promise<void> {
    const { store, cutting, nowMs, log } = this.#deps
    const { session, identity, login, grant } = stay
    try {
      const refusal = this.#refuseAccess(stay) ?? (await this.#refuseCredential(stay))
      if (refusal === undefined) return store.stays.noteChecked(session, nowMs())
      log.warn('reauthorize_refused', { session, code: refusal.code })
      const cut = cutting.cut({
        identity,
        session,
        ...(login === undefined ? {} : { login }),
        ...(grant === undefined ? {} : { grant }),
      })
      // In the turn in which the cut was written down.
      store.stays.remove(session)
      await cut
    } catch (caught) {
      // Nobody is put out because an account does not answer; the next look asks again.
      const { code } = SandwireError.from(caught)
      log.warn('reauthorize_failed', { session, code })
    }
  }

  /** Why what it came by gives it too little now. Other grants that it may have by now are not what it came by. */
  #refuseAccess({ identity, grant }: CheckedStay): SandwireError | undefined {
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

  async #refuseCredential(stay: CheckedStay): Promise<SandwireError | undefined> {
    const { registrar } = this.#deps
    if (stay.login === undefined || (await registrar.welcomes(stay.identity, stay))) return undefined
    return signInEnded()
  }
}
