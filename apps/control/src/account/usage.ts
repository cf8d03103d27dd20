import { KeyedSerializer } from '@sandwire/async'
import { type Amounts, type Resource, RESOURCES } from '@sandwire/operator-settings'
import type { Ceilings } from '../ceilings/ceilings.ts'
import { ceilingError, checkCeilings, type SandboxRequest } from '../ceilings/check-ceilings.ts'
import { noSuchSandbox } from '../sandbox/not-found.ts'
import type { SandboxView } from '../sandbox/record.ts'
import type { AccountStore } from './store.ts'
import type { StoredBytes } from './stored-bytes.ts'

/** How often an account with running sandboxes reports its use, even if it is the same. */
const REPORT_MS = 5 * 60 * 1000
/** Until a sandbox that got a name must have been reported; later, its creation was interrupted. */
const CLAIM_MS = 10_000
/** How long a session counts that was admitted and is not in the list of its sandbox; it may be being started. */
const ADMITTED_MS = 10_000

/** The machine's ceilings, which the account's use counts against. */
export interface MachineUsage {
  reserve(usage: Amounts, asked: Amounts, action: string): Promise<void>
  report(usage: Amounts): Promise<void>
}

export interface AccountUsageDependencies {
  readonly store: AccountStore
  readonly stored: Pick<StoredBytes, 'total' | 'remove'>
  readonly machine: MachineUsage
  readonly ceilings: Ceilings
  /** False where the provider does not set the limits of sandboxes, which are then not counted. */
  readonly countsLimits: boolean
  readonly nowMs: () => number
}

/** Use of one resource; null: no ceiling. */
export interface ResourceUse {
  readonly used: number
  readonly limit: number | null
}

/** What an account uses, against its ceilings. Requests that add to it are granted one after the other. */
export class AccountUsage {
  readonly #deps: AccountUsageDependencies
  /** Sandboxes that were admitted and have not been reported yet. */
  readonly #claims = new Map<string, { readonly diskBytes: number; readonly atMs: number }>()
  /** When sessions were admitted that their sandbox has not reported yet. */
  readonly #admitted = new Map<string, number>()
  readonly #serializer = new KeyedSerializer()
  #reported: { readonly text: string; readonly atMs: number } | undefined

  constructor(deps: AccountUsageDependencies) {
    this.#deps = deps
  }

  /** The sandbox that has a name; undefined when there is none, or its creation was interrupted. */
  find(name: string): string | undefined {
    const { store, nowMs } = this.#deps
    const id = store.idOf(name)
    if (id === undefined || store.viewOf(id) !== undefined) return id
    const { atMs = Number.NEGATIVE_INFINITY } = this.#claims.get(id) ?? {}
    return nowMs() - atMs < CLAIM_MS ? id : undefined
  }

  /**
   * Gives a new sandbox a name; throws when it exceeds a ceiling. For a name in use, returns the id that has it, with `isNew`
   * false. After an interrupted creation the sandbox gets the earlier id: its object may exist.
   */
  claim(name: string, id: string, sandbox: SandboxRequest): Promise<{ id: string; isNew: boolean }> {
    const { store, ceilings, countsLimits, nowMs } = this.#deps
    return this.#serialize(async () => {
      const known = this.find(name)
      if (known !== undefined) return { id: known, isNew: false }
      const interrupted = store.idOf(name)
      const { diskBytes } = sandbox.limits
      const counted = interrupted === undefined ? 0 : this.#claimedDisk(interrupted)
      const adds = {
        ...(interrupted === undefined && { sandboxes: 1 }),
        ...(countsLimits && { diskBytes: Math.max(0, diskBytes - counted) }),
      }
      const violation = checkCeilings({ sandbox, adds }, { account: this.amounts() }, ceilings)
      if (violation !== undefined) throw ceilingError(violation, 'create the sandbox')
      const claimed = interrupted ?? id
      this.#claims.set(claimed, { diskBytes, atMs: nowMs() })
      if (interrupted === undefined) store.insertSandbox(claimed, name)
      try {
        await this.#reserve(adds, 'create the sandbox')
      } catch (error) {
        if (interrupted === undefined) this.remove(claimed)
        throw error
      }
      return { id: claimed, isNew: true }
    })
  }

  /** Stores a sandbox as starting; throws when it exceeds a ceiling. */
  reserveStart(view: SandboxView): Promise<void> {
    const { store, ceilings, countsLimits } = this.#deps
    return this.#serialize(async () => {
      const before = store.viewOf(view.id)
      if (before === undefined) throw noSuchSandbox()
      const { memoryBytes, milliCpus, pids } = view.limits
      const adds = { running: 1, ...(countsLimits ? { memoryBytes, milliCpus, pids } : {}) }
      const violation = checkCeilings({ adds }, { account: this.amounts(view.id) }, ceilings)
      if (violation !== undefined) throw ceilingError(violation, 'start the sandbox')
      store.setView(view)
      store.setSessions(view.id, [])
      try {
        await this.#reserve(adds, 'start the sandbox')
      } catch (error) {
        store.setView(before)
        throw error
      }
    })
  }

  /** Counts a session that is about to start; throws at the ceiling. */
  admitSession(session: string): void {
    const { store, ceilings, nowMs } = this.#deps
    const now = nowMs()
    for (const [id, atMs] of this.#admitted) if (atMs <= now - ADMITTED_MS) this.#admitted.delete(id)
    const sessions = store.countLiveSessions() + this.#admitted.size
    const violation = checkCeilings({ adds: { sessions: 1 } }, { account: { sessions } }, ceilings)
    if (violation !== undefined) throw ceilingError(violation, 'start the session')
    this.#admitted.set(session, now)
  }

  /** Sessions that a sandbox reported are counted from its list. */
  setKnownSessions(sessions: Iterable<string>): void {
    for (const session of sessions) this.#admitted.delete(session)
  }

  remove(id: string): void {
    this.#claims.delete(id)
    this.#deps.store.removeSandbox(id)
    this.#deps.stored.remove(id)
  }

  /** Reports the use to the machine if it has changed, or was not reported for a while. */
  async report(): Promise<void> {
    const { machine, nowMs } = this.#deps
    await this.#serialize(async () => {
      const amounts = this.amounts()
      const text = JSON.stringify(amounts)
      const isDue = (amounts.running ?? 0) > 0 && nowMs() - (this.#reported?.atMs ?? 0) >= REPORT_MS
      if (text === this.#reported?.text && !isDue) return
      await machine.report(amounts)
      this.#reported = { text, atMs: nowMs() }
    })
  }

  /** What the account uses, without one sandbox if it is running. */
  amounts(exceptRunning?: string): Amounts {
    const { store, countsLimits } = this.#deps
    const { running, all } = store.usage(exceptRunning)
    for (const id of this.#claims.keys()) if (!all.unreported.includes(id)) this.#claims.delete(id)
    const claimed = all.unreported.map((id) => this.#claimedDisk(id))
    return {
      running: running.count,
      sandboxes: all.count,
      ...(countsLimits
        ? {
            memoryBytes: running.memoryBytes,
            milliCpus: running.milliCpus,
            pids: running.pids,
            diskBytes: claimed.reduce((sum, bytes) => sum + bytes, all.diskBytes),
          }
        : {}),
    }
  }

  /** Every resource that is counted, with the highest amount that the account can have. */
  uses(): Readonly<Partial<Record<Resource, ResourceUse>>> {
    const { store, stored, ceilings } = this.#deps
    const sessions = store.countLiveSessions()
    const amounts: Amounts = { ...this.amounts(), storedBytes: stored.total, sessions }
    const uses: Partial<Record<Resource, ResourceUse>> = {}
    for (const resource of RESOURCES) {
      const { [resource]: used } = amounts
      if (used !== undefined) uses[resource] = { used, limit: highestFor(resource, ceilings) }
    }
    return uses
  }

  /** Disk of a sandbox that was not reported yet. */
  #claimedDisk(id: string): number {
    return this.#claims.get(id)?.diskBytes ?? this.#deps.ceilings.defaults.limits.diskBytes
  }

  async #reserve(asked: Amounts, action: string): Promise<void> {
    const { machine, nowMs } = this.#deps
    const amounts = this.amounts()
    await machine.reserve(amounts, asked, action)
    this.#reported = { text: JSON.stringify(amounts), atMs: nowMs() }
  }

  #serialize<T>(run: () => Promise<T>): Promise<T> {
    return this.#serializer.run('usage', run)
  }
}

/** The account's own ceiling, or its part of the machine's if that is lower. */
function highestFor(resource: Resource, { account, machine, isShared }: Ceilings): number | null {
  const { [resource]: own = null } = account
  const { [resource]: all = null } = machine
  const share = all === null || !isShared ? all : Math.ceil(all / 2)
  return own === null || share === null ? (own ?? share) : Math.min(own, share)
}
