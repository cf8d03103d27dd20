import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { COMMON_HEADERS } from '../http/respond.ts'
import { checkSource, type SourceSettings } from '../http/source-check.ts'
import type { AppEnv } from './context.ts'

/** First of all checks: whom the request was meant for, where it comes from, and that no credential is in its URL. */
export function sourceGate(settings: SourceSettings): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const refusal = checkSource(context.req.raw.headers, settings)
    if (refusal !== undefined) throw refusal
    // A URL ends up in histories and logs; a credential in one is burnt, so it is never accepted.
    if (new URL(context.req.url).searchParams.has('token'))
      throw new SandwireError('bad_request', 'Cannot use parameter "token": a token travels in a header')
    await next()
    if (context.res.status === 101) return
    for (const [name, value] of Object.entries(COMMON_HEADERS))
      if (!context.res.headers.has(name)) context.res.headers.set(name, value)
  }
}
