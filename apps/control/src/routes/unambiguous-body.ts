import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { findDuplicateKey } from '../http/duplicate-key.ts'
import type { AppEnv } from './context.ts'

/** Most of a name that is said back. */
const MAX_NAME_CHARS = 60

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    // Told by whoever decodes the body.
    return false
  }
}

/** Refuses a body in which an object has a key twice. */
export const unambiguousBody: MiddlewareHandler<AppEnv> = async (context, next) => {
  const text = await context.req.text()
  const key = isJson(text) ? findDuplicateKey(text) : undefined
  if (key === undefined) return next()
  const shown = key.replace(/\p{C}/gu, '').slice(0, MAX_NAME_CHARS)
  throw new SandwireError('bad_request', `Cannot use "${shown}": given twice`)
}
