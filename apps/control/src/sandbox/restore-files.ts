import { SandwireError } from '@sandwire/protocol'
import type { PendingRestore } from '../versions/pending-restores.ts'
import type { RestoreReason, Version } from '../versions/version-store.ts'
import type { FileVersionsDependencies } from './file-versions.ts'

/** The folder that a restore to a message replaces. The others have what programs remember, such as the agent's conversation. */
const WORKSPACE = 'workspace'
const HOME = 'home'

/** A sandbox that has started; `epoch` identifies the start. */
export interface StartedSandbox {
  readonly sandbox: string
  readonly address: string
  readonly epoch: string
}

interface FileRestore {
  readonly version: Version
  /** Set when only the workspace becomes that of the version. */
  readonly rest: PendingRestore['rest']
  readonly reason: RestoreReason
  readonly requestId: string
}

/** Replaces the files of a sandbox that has started and has no process yet. */
export async function restoreFiles(
  { store, versions, provider, log, events, metrics, nowMs }: FileVersionsDependencies,
  target: StartedSandbox,
  { version, rest, reason, requestId }: FileRestore,
): Promise<void> {
  if (versions === undefined) throw notSaved()
  const { number, createdMs } = version
  const { sandbox } = target
  events.emit({ event: 'restore_started', data: { version: number, savedMs: createdMs } })
  const onProgress = (done: number, total: number): void =>
    events.emit({ event: 'restoring', data: { done, total } })
  try {
    if (rest?.isMissing === true)
      await versions.restore(target, rest.version, requestId, { onProgress, root: HOME })
    await versions.restore(target, version, requestId, {
      onProgress,
      ...(rest === undefined ? {} : { root: WORKSPACE }),
    })
  } catch (caught) {
    const { code, message } = SandwireError.from(caught)
    log.warn('restore_failed', { sandbox, request_id: requestId, code, cause: message })
    events.emit({ event: 'restore_failed', data: { code } })
    metrics.restored(false)
    throw caught
  }
  const restored = { version: number, savedMs: createdMs, restoredMs: nowMs(), reason }
  // One step: a crash before it repeats the restore, and a crash after it finds these files as the newest version. A restored
  // workspace is no version yet: the next save makes one of it.
  if (rest === undefined) store.addRestored(version, restored.restoredMs)
  store.setStarted(target.epoch, provider, restored)
  store.pending.clear()
  log.info('restored', { sandbox, request_id: requestId, state: reason })
  events.emit({ event: 'restored', data: restored })
  metrics.restored(true)
}

export function notSaved(): SandwireError {
  return new SandwireError('not_found', 'Cannot use versions: this server has no store for them')
}
