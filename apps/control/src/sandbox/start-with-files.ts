import type { SandboxStatus, StartSpec } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { LifecycleDependencies } from './lifecycle-dependencies.ts'

/** Has the provider start a sandbox. If its files are missing there, those of the newest version will be restored. */
export async function startWithFiles(
  { provider, files, log }: Pick<LifecycleDependencies, 'provider' | 'files' | 'log'>,
  spec: StartSpec & { readonly hasFiles: boolean },
  requestId: string,
): Promise<SandboxStatus> {
  const start = (): Promise<SandboxStatus> =>
    provider.start({ ...spec, hasFiles: spec.hasFiles && !files.hasPendingRestore }, requestId)
  files.prepareStart(spec.hasFiles)
  try {
    return await start()
  } catch (error) {
    if (SandwireError.from(error).code !== 'files_missing' || !files.recover()) throw error
    log.warn('files_missing', { sandbox: spec.id, request_id: requestId })
    return start()
  }
}
