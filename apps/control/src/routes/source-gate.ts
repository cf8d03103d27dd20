import type { MiddlewareHandler } from 'hono'
import { takeTokenFromUrl } from '../auth/token-in-url.ts'
import { COMMON_HEADERS } from '../http/respond.ts'
import { checkSource, type SourceSettings } from '../http/source-check.ts'
import type { AppEnv } from './context.ts'

/** First of all checks: whom the request was meant for, where it comes from, and that no credential stays in its URL. */
export function sourceGate(
  settings: SourceSettings & { readonly tokenInUrl: boolean },
): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const refusal = checkSource(context.req.raw, settings)
    if (refusal !== undefined) throw refusal
    const moved = takeTokenFromUrl(context.req.raw, settings.tokenInUrl)
    if (moved !== undefined) context.req.raw = moved
    await next()
    if (context.res.status === 101) return
    for (const [name, value] of Object.entries(COMMON_HEADERS))
      if (!context.res.headers.has(name)) context.res.headers.set(name, value)
  }
}
