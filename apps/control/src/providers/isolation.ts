import { withTimeout } from '@sandwire/async'
import type { HostHealth } from '@sandwire/internal-api'
import type { Provider } from './provider.ts'

/** How long an answer about sandboxes waits for it; without, it says that it is not known. */
const ASK_MS = 2_000

/** What keeps sandboxes in; null while what makes them does not answer. */
export type IsolationOf = (requestId: string) => Promise<HostHealth['isolation'] | null>

/** Asks the provider until it has answered once: what makes sandboxes does not change while this server runs. */
export function rememberIsolation(provider: Pick<Provider, 'health'>): IsolationOf {
  let known: HostHealth['isolation'] | undefined
  return async (requestId) => {
    if (known !== undefined) return known
    try {
      const late = (): Error => new Error('It does not answer')
      const { isolation } = await withTimeout(provider.health(requestId), ASK_MS, late)
      known = isolation
      return isolation
    } catch {
      // Whether the provider is there is told elsewhere; here it is only not known.
      return null
    }
  }
}
