import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import type { Provider } from '../providers/provider.ts'
import type { Version } from '../versions/version-store.ts'
import type { FileVersions } from './file-versions.ts'
import type { SandboxLifecycle } from './lifecycle.ts'

interface RestoreDependencies {
  readonly lifecycle: SandboxLifecycle
  readonly files: FileVersions
  readonly provider: Pick<Provider, 'checkpoints'>
}

/** Replaces the files of a sandbox by a version. The current files become a checkpoint first, so that this can be undone. */
export async function restoreVersion(
  { lifecycle, files, provider }: RestoreDependencies,
  nameOrNumber: string,
  requestId: string,
): Promise<void> {
  const { checkpoints } = provider
  if (checkpoints !== undefined && !files.isEnabled) {
    const { number } = await checkpoints.find(lifecycle.id, nameOrNumber)
    await checkpoints.create(lifecycle.id, undefined)
    return lifecycle.restart(requestId, () => checkpoints.restore(lifecycle.id, number))
  }
  const version = files.find(nameOrNumber)
  const { kind } = await lifecycle.observe(requestId)
  let undoVersion: Version | undefined
  // The current files are then those of the newest version, which may be one that cannot be restored.
  if (kind !== 'running' && files.startReplacesFiles) files.keepNewest()
  else if (await startUnlessMissing(lifecycle, requestId))
    undoVersion = await files.save({ pause: 'checkpoint', kind: 'checkpoint', requestId })
  await restartRestored({ lifecycle, files }, requestId, undoVersion, () => files.setPendingRestore(version))
}

/** Restarts the sandbox with restored files. What cannot be restored must not keep it from starting with those that it had. */
async function restartRestored(
  { lifecycle, files }: Pick<RestoreDependencies, 'lifecycle' | 'files'>,
  requestId: string,
  undoVersion: Version | undefined,
  setPending: () => void,
): Promise<void> {
  try {
    await lifecycle.restart(requestId, setPending)
  } catch (error) {
    if (undoVersion !== undefined && !SandwireError.from(error).info.retryable)
      files.replacePendingRestore(undoVersion)
    throw error
  }
}

/** Errors of a start after which there are no current files: they are missing, and the newest version cannot replace them. */
const NO_FILES: readonly ErrorCode[] = ['files_missing', 'version_damaged']

/** Starts the sandbox; returns false when it has no files. */
async function startUnlessMissing(lifecycle: SandboxLifecycle, requestId: string): Promise<boolean> {
  try {
    await lifecycle.start(requestId)
    return true
  } catch (error) {
    if (NO_FILES.includes(SandwireError.from(error).code)) return false
    throw error
  }
}

/** A restore of the workspace to what it was when a message of a conversation or run was sent. */
export interface WorkspaceRestore {
  /** The conversation or run. */
  readonly holder: string
  /** Names the restore: repeating it restores once. */
  readonly key: string
  /** Number of the version. */
  readonly version: number
  /** Other versions that the holder keeps. */
  readonly kept: readonly number[]
}

/**
 * By request of the owner, replaces the workspace by that of a version and leaves the other folders as they are, in which agents
 * keep their conversations.
 * The current files become a version that the holder keeps. Returns its number.
 */
export async function restoreWorkspace(
  { lifecycle, files }: Pick<RestoreDependencies, 'lifecycle' | 'files'>,
  by: string,
  { holder, key, version: number, kept }: WorkspaceRestore,
): Promise<number> {
  const requestId = crypto.randomUUID()
  lifecycle.authorize({ identity: by }, 'own')
  const { held } = files
  const earlier = held.lastRestore(holder)
  if (earlier?.key === key && earlier.isDone) return earlier.undoVersion
  if (lifecycle.agents.some((id) => id !== holder))
    throw new SandwireError('conflict', 'Cannot restore the files: another agent works in the sandbox')
  const version = files.find(String(number))
  let undoVersion: Version
  if (earlier?.key === key) undoVersion = files.find(String(earlier.undoVersion))
  else {
    await lifecycle.start(requestId)
    undoVersion = await files.hold(holder, { kept: [...kept, number], pause: 'checkpoint' })
    held.beginRestore(holder, key, undoVersion.number)
  }
  await restartRestored({ lifecycle, files }, requestId, undoVersion, () =>
    files.setPendingWorkspace(version),
  )
  const restarted = await lifecycle.observe(requestId)
  try {
    // Until it is saved, a sandbox that loses its files would start with the current ones again.
    await files.save({ pause: 'checkpoint', kind: 'automatic', requestId })
  } catch (error) {
    const now = await lifecycle.observe(requestId)
    const isSame = now.kind === 'running' && restarted.kind === 'running' && now.epoch === restarted.epoch
    // While it runs, the save is repeated.
    if (!isSame) throw error
  }
  held.endRestore(holder)
  return undoVersion.number
}
