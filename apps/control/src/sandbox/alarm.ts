import { KeyedSerializer } from '@sandwire/async'
import type { AuditLog } from './audit-log.ts'
import type { Provider } from '../providers/provider.ts'
import type { HolderIndex } from './holder-index.ts'
import type { SandboxLifecycle } from './lifecycle.ts'
import type { RecheckAuthorization } from './recheck-authorization.ts'
import type { Revocation } from './revocation.ts'
import { isAtRest } from './state.ts'
import type { SandboxStore } from './store.ts'

/** The part of an object's storage that its alarm needs. */
export interface AlarmStorage {
  getAlarm(): Promise<number | null>
  setAlarm(atMs: number): Promise<void>
  deleteAlarm(): Promise<void>
}

/** The one alarm of an object, shared by several mechanisms: it fires for the earliest, which then sets the next time. */
export class ObjectAlarm {
  readonly #storage: AlarmStorage
  /** One change at a time: each reads the alarm before it sets it. */
  readonly #serializer = new KeyedSerializer()

  constructor(storage: AlarmStorage) {
    this.#storage = storage
  }

  /** Sets the alarm for this time unless it is set for an earlier one. */
  setBy(atMs: number): Promise<void> {
    return this.#serializer.run('alarm', async () => {
      const setMs = await this.#storage.getAlarm()
      if (setMs === null || setMs > atMs) await this.#storage.setAlarm(atMs)
    })
  }

  /** Sets the alarm for exactly this time; undefined: deletes it. */
  setAt(atMs: number | undefined): Promise<void> {
    return this.#serializer.run('alarm', () =>
      atMs === undefined ? this.#storage.deleteAlarm() : this.#storage.setAlarm(atMs),
    )
  }
}

export interface AlarmDependencies {
  readonly store: Pick<SandboxStore, 'read'>
  readonly revocation: Pick<Revocation, 'onAlarm'>
  readonly audit: Pick<AuditLog, 'deliver'>
  readonly holders: Pick<HolderIndex, 'deliver'>
  readonly lifecycle: Pick<SandboxLifecycle, 'poll'>
  readonly recheck: Pick<RecheckAuthorization, 'onAlarm'>
  readonly provider: Pick<Provider, 'execSessions'>
  /** Deletes stored files that nothing needs, when that is due. */
  readonly collectGarbage: () => Promise<void>
  /** Sets the alarm for what is pending beside the lifecycle. */
  readonly rearm: () => Promise<void>
  /** Keeps the object alive until the work is done. */
  readonly hold: (work: Promise<unknown>) => void
  readonly mintRequestId: () => string
}

/**
 * Handles the alarm of a sandbox's object: all steps in order, each even if an earlier one failed. Throws the first error, so
 * that the runtime fires the alarm again.
 */
export async function onAlarm(deps: AlarmDependencies): Promise<void> {
  const { store, revocation, audit, holders, lifecycle, recheck, provider, collectGarbage, rearm } = deps
  const { hold, mintRequestId } = deps
  // First, and not awaited: nothing may delay a revocation, and it delays nothing.
  hold(revocation.onAlarm())
  const state = store.read()?.state
  const isStopped = state !== undefined && isAtRest(state)
  const polls = isStopped ? [] : [() => lifecycle.poll(mintRequestId()), () => recheck.onAlarm()]
  const failures: unknown[] = []
  // The fired alarm is gone, and a step may set the next one for much later: a crash before the end must not delay what is pending.
  const collectExecSessions = async (): Promise<void> => provider.execSessions?.collect()
  const deliveries = [() => audit.deliver(), () => holders.deliver()]
  for (const step of [rearm, ...deliveries, ...polls, collectExecSessions, collectGarbage, rearm])
    await step().catch((error: unknown) => void failures.push(error))
  if (failures.length > 0) throw failures[0]
}
