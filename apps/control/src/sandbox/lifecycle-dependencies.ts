import type { Ceilings } from '../ceilings/ceilings.ts'
import type { Limits } from '../limits.ts'
import type { Log } from '../log.ts'
import type { Provider } from '../providers/provider.ts'
import type { FileVersions } from './file-versions.ts'
import type { LateRefusals } from './late-refusals.ts'
import type { SandboxView } from './record.ts'
import type { SandboxdClient } from './sandboxd-client.ts'
import type { SandboxdMetrics } from './sandboxd-metrics.ts'
import type { SessionFacts } from './session-view.ts'
import type { Destroyer } from './state.ts'
import type { SandboxStore } from './store.ts'

/** The owner's index of sandboxes. */
export interface SandboxIndex {
  /** `sessions` replaces the known sessions of the sandbox. */
  report(owner: string, view: SandboxView, sessions?: readonly SessionFacts[]): Promise<void>
  /** Reports a sandbox that is about to start; throws `ceiling_exceeded` when the account or the machine has no room for it. */
  reserve(owner: string, view: SandboxView): Promise<void>
  /** Counts a session that is about to start; throws `ceiling_exceeded` at the account's ceiling. */
  admitSession(owner: string, session: string): Promise<void>
  remove(owner: string, sandbox: string): Promise<void>
  /** True when the account has a name for the sandbox. */
  has(owner: string, sandbox: string): Promise<boolean>
}

export interface LifecycleDependencies {
  readonly store: SandboxStore
  readonly provider: Provider
  readonly index: SandboxIndex
  /** Saves and restores its files. */
  readonly files: Pick<
    FileVersions,
    | 'isEnabled'
    | 'saved'
    | 'watch'
    | 'saveBeforeStop'
    | 'prepareStart'
    | 'recover'
    | 'hasPendingRestore'
    | 'hasFiles'
    | 'restoreAtStart'
  >
  readonly sandboxd: (sandbox: string) => SandboxdClient
  /** Receives each activity response of sandboxd. */
  readonly refusals: Pick<LateRefusals, 'receive'>
  readonly sandboxdMetrics: Pick<SandboxdMetrics, 'receive'>
  /** Verifies control's tokens in the sandbox. */
  readonly publicKey: string
  readonly settings: {
    readonly alarmMs: number
    readonly limits: Pick<Limits, 'sessionsPerSandbox' | 'outputBytesPerSecond'>
  }
  readonly ceilings: Pick<Ceilings, 'sandbox' | 'account' | 'defaults'>
  readonly nowMs: () => number
  readonly log: Log
  readonly alarm: { set(atMs: number): Promise<void>; clear(): Promise<void> }
  /** Called when the provider has destroyed the sandbox, before the object's own storage is deleted. */
  readonly onDestroyed: (by: Destroyer, requestId: string) => Promise<void>
  /** Keeps the last log lines of a sandbox that is about to be destroyed. A failure must not prevent that. */
  readonly keepLog: (sandbox: string, requestId: string) => Promise<void>
  /** Deletes the saved files of a destroyed sandbox. */
  readonly deleteSegments: (sandbox: string) => Promise<void>
  /** Deletes the object's storage, except what forks of the sandbox need. */
  readonly deleteAll: (sandbox: string) => Promise<void>
}
