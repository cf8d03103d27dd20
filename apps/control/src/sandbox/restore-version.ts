import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import type { Provider } from '../providers/provider.ts'
import type { FileVersions } from './file-versions.ts'
import type { SandboxLifecycle } from './lifecycle.ts'

interface RestoreDependencies {
  readonly lifecycle: SandboxLifecycle
  readonly files: FileVersions
  readonly provider: Pick<Provider, 'checkpoints'>
}

/** Replaces the files of a sandbox by a version. The present files become a checkpoint first, so that this can be undone. */
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
  // The present files are then those of the newest version, which may be one that cannot be restored.
  if (kind !== 'running' && files.startReplacesFiles) files.keepNewest()
  else if (await startUnlessMissing(lifecycle, requestId))
    await files.save({ pause: 'checkpoint', kind: 'checkpoint', requestId })
  await lifecycle.restart(requestId, () => files.setPendingRestore(version))
}

/** Errors of a start after which there are no present files: they are missing, and the newest version cannot replace them. */
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
