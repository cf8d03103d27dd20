import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from './context.ts'

/** Most of a name that is said back. */
const MAX_NAME_CHARS = 60

/** For routes that take no parameters: one that is given was meant to do something, so it is not passed over. */
export const withoutQuery: MiddlewareHandler<AppEnv> = async (context, next) => {
  const [name] = new URL(context.req.url).searchParams.keys()
  if (name === undefined) return next()
  const shown = name.replace(/\p{C}/gu, '').slice(0, MAX_NAME_CHARS)
  throw new SandwireError('bad_request', `Cannot use "${shown}": unknown`)
}
