import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { withDeadline } from './deadline.ts'
import { bodyTooLarge, readRequestBody } from './request-body.ts'

/** How long a body that is held whole may take. */
const BODY_MS = 20_000

/** Reads a body whole, within bounds, before anything looks at it. Behind the guard: strangers are not waited for. */
export function holdBody(maxBytes: number, ms = BODY_MS): MiddlewareHandler {
  const late = (): SandwireError =>
    new SandwireError('silent', `Cannot read the body: it did not come within ${Math.ceil(ms / 1000)} s`)
  return async (context, next) => {
    const { raw } = context.req
    if (raw.body !== null && raw.method !== 'GET' && raw.method !== 'HEAD') {
      if (Number(raw.headers.get('content-length') ?? 0) > maxBytes) throw bodyTooLarge(maxBytes)
      const { body } = raw
      const bytes = await withDeadline({ ms, late }, (signal) => readRequestBody(body, maxBytes, signal))
      context.req.raw = new Request(raw, { method: raw.method, body: bytes })
    }
    context.set('isBodyHeld', true)
    await next()
  }
}
