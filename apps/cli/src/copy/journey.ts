import type { SandwireError } from '@sandwire/protocol'
import type { Copying } from './copying.ts'
import { persist } from './persist.ts'
import type { RemoteWorkspace } from './remote-workspace.ts'

/** What every part of one copy works with. */
export interface Journey {
  readonly remote: RemoteWorkspace
  readonly copying: Copying
  readonly signal: AbortSignal
}

/** Does a part of the copy again after cuts, and shows that it waits. */
export function insist<T>(
  { copying, signal }: Journey,
  action: () => Promise<T>,
  progress: () => number,
): Promise<T> {
  const onRetry = (error: SandwireError): void => copying.stalled(`${error.message}: trying again`)
  return persist(action, { signal, progress, onRetry })
}
