import type { HostHealth, SpritesProblem } from '@sandwire/internal-api'
import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import type { Provider } from './provider.ts'
import { SpritesError } from './sprites/errors.ts'

/** A result this young is returned as it is. The host asks every supervisor, and anyone may request the health. */
export const FRESH_MS = 2_000
/** While a request refreshes it, others get a result up to this age. */
export const MAX_AGE_MS = 30_000

export type ProviderHealth =
  | (Pick<HostHealth, 'isolation' | 'disk'> & { readonly status: 'ok'; readonly code: null })
  | {
      readonly status: 'unavailable'
      readonly code: ErrorCode
      /** More than the code says; for the operator. */
      readonly reason?: SpritesProblem
      readonly isolation: null
      readonly disk?: undefined
    }

/** Reads the health of the provider, however many requests there are, at most once in `FRESH_MS` and one at a time. */
export function cacheHealth(
  provider: Pick<Provider, 'health'>,
  nowMs: () => number,
): (requestId: string) => Promise<ProviderHealth> {
  let known: { readonly health: ProviderHealth; readonly atMs: number } | undefined
  /** When the last refresh began. One that a canceled request began never ends. */
  let refreshedMs = Number.NEGATIVE_INFINITY
  return async (requestId) => {
    const now = nowMs()
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : now - known.atMs
    const isRefreshing = now - refreshedMs < MAX_AGE_MS
    if (known !== undefined && (ageMs < FRESH_MS || (isRefreshing && ageMs < MAX_AGE_MS))) return known.health
    refreshedMs = now
    const health = await provider.health(requestId).then(
      ({ isolation, disk }): ProviderHealth => ({
        status: 'ok',
        code: null,
        isolation,
        ...(disk !== undefined && { disk }),
      }),
      (caught: unknown): ProviderHealth => ({
        status: 'unavailable',
        code: SandwireError.from(caught).code,
        ...(caught instanceof SpritesError && { reason: caught.problem }),
        isolation: null,
      }),
    )
    known = { health, atMs: nowMs() }
    refreshedMs = Number.NEGATIVE_INFINITY
    return health
  }
}
