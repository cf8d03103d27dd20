import { SandwireError } from '@sandwire/protocol'
import type { SandboxCall } from './call.ts'
import type { LifecycleDependencies } from './lifecycle-dependencies.ts'
import type { Destroyer } from './state.ts'

/** The alarm tries this often to destroy a sandbox whose provider did not respond. */
export const DESTROY_RETRY_MS = 5_000

export function destroyerOf({ identity, name, address, login }: SandboxCall): Destroyer {
  return { identity, name, address, ...(login === undefined ? {} : { login }) }
}

/** Deletes a sandbox whose intended destruction is stored. Every step can be repeated. */
export async function destroySandbox(
  { store, provider, keepLog, deleteSegments, index, onDestroyed, alarm, deleteAll }: LifecycleDependencies,
  by: Destroyer,
  { sandbox, requestId }: { readonly sandbox: string; readonly requestId: string },
): Promise<void> {
  const owner = store.read()?.owner ?? by.identity
  await keepLog(sandbox, requestId)
  await provider.destroy(sandbox, requestId)
  await deleteSegments(sandbox)
  await index.remove(owner, sandbox)
  await onDestroyed(by, requestId)
  await deleteAll(sandbox)
  // Last: until then the alarm would finish what a crash interrupts.
  await alarm.clear()
}

/** Finishes a destruction that was interrupted; if it fails, the alarm is set for the next attempt. */
export async function resumeDestroy(
  { alarm, nowMs, log }: Pick<LifecycleDependencies, 'alarm' | 'nowMs' | 'log'>,
  { sandbox, requestId }: { readonly sandbox: string; readonly requestId: string },
  destroy: () => Promise<void>,
): Promise<void> {
  // A crash during this attempt must not be the end of it.
  await alarm.set(nowMs() + DESTROY_RETRY_MS)
  try {
    await destroy()
  } catch (caught) {
    const { code, message } = SandwireError.from(caught)
    log.warn('destroy_delayed', { request_id: requestId, sandbox, code, cause: message })
  }
}
