import type { MiddlewareHandler } from 'hono'
import { isFromConversationPage, type SourceSettings } from './source-check.ts'

const PREFLIGHT_SECONDS = 600

/**
 * Cross-origin requests (the CORS protocol of the Fetch standard) of the listed origins, on the routes of conversations. Without
 * credentials: pages send their token in a header, and no cookie of this server counts.
 */
export function allowConversationPages(
  settings: Pick<SourceSettings, 'conversationOrigins'>,
): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context
    const isAllowed = isFromConversationPage(req.raw, settings)
    const origin = req.header('origin') ?? ''
    if (isAllowed && req.method === 'OPTIONS' && req.header('access-control-request-method') !== undefined)
      return new Response(null, {
        status: 204,
        headers: {
          'access-control-allow-origin': origin,
          'access-control-allow-methods': 'GET, POST, DELETE',
          'access-control-allow-headers': 'Authorization, Content-Type, Idempotency-Key',
          'access-control-max-age': String(PREFLIGHT_SECONDS),
          vary: 'Origin',
        },
      })
    await next()
    if (!isAllowed || context.res.status === 101) return undefined
    context.res.headers.set('access-control-allow-origin', origin)
    context.res.headers.set('access-control-expose-headers', 'x-request-id, x-sandwire-code, retry-after')
    context.res.headers.append('vary', 'Origin')
    return undefined
  }
}
