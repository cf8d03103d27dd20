import { withTimeout } from '@sandwire/async'
import type { HostHealth } from '@sandwire/internal-api'
import type { Provider } from './provider.ts'

/** How long a request waits for the provider; then the isolation is unknown. */
const HEALTH_MS = 2_000

/** How sandboxes are isolated; null while the provider does not respond. */
export type IsolationOf = (requestId: string) => Promise<HostHealth['isolation'] | null>

/** Reads the isolation from the provider and caches it: it does not change while the server runs. */
export function cacheIsolation(provider: Pick<Provider, 'health'>): IsolationOf {
  let known: HostHealth['isolation'] | undefined
  return async (requestId) => {
    if (known !== undefined) return known
    try {
      const late = (): Error => new Error('The provider does not respond')
      const { isolation } = await withTimeout(provider.health(requestId), HEALTH_MS, late)
      known = isolation
      return isolation
    } catch {
      // The health of the provider is reported elsewhere.
      return null
    }
  }
}
