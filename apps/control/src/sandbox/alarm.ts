import type { AuditTrail } from './audit-trail.ts'
import type { Cutting } from './cutting.ts'
import type { SandboxLife } from './life.ts'
import type { Reauthorizing } from './reauthorizing.ts'
import type { SandboxStore } from './store.ts'

export interface AlarmDependencies {
  readonly store: Pick<SandboxStore, 'read'>
  readonly cutting: Pick<Cutting, 'ring'>
  readonly trail: Pick<AuditTrail, 'tell'>
  readonly life: Pick<SandboxLife, 'look'>
  readonly reauthorizing: Pick<Reauthorizing, 'ring'>
  /** Sets the alarm for whatever waits beside the life of the sandbox. */
  readonly rearm: () => Promise<void>
  /** Keeps the object alive until this is over. */
  readonly hold: (work: Promise<unknown>) => void
  readonly mintRequestId: () => string
}

/**
 * What is done when the alarm of a sandbox's object rings: one thing after the other, each whatever became of those before it.
 * Throws what failed first, for which the runtime rings again.
 */
export async function ringAlarm(deps: AlarmDependencies): Promise<void> {
  const { store, cutting, trail, life, reauthorizing, rearm, hold, mintRequestId } = deps
  // First, and not waited for: nothing else may hold a cut up, and it holds nothing up.
  hold(cutting.ring())
  const is = store.read()?.state.is
  const isAtRest = is === 'stopped' || is === 'failed'
  const looks = isAtRest ? [] : [() => life.look(mintRequestId()), () => reauthorizing.ring()]
  const failures: unknown[] = []
  for (const step of [() => trail.tell(), ...looks, rearm])
    await step().catch((error: unknown) => void failures.push(error))
  if (failures.length > 0) throw failures[0]
}
