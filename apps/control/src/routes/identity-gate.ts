import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from './context.ts'

/** What is answered even by a server that lets nobody in, so that whoever runs it can see that it lives. */
const ALWAYS_SERVED = ['/health', '/healthz', '/readyz']

/** Serves nothing but health while nobody can be let in, and says why. */
export function identityGate(fault: string | undefined): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    if (fault !== undefined && !ALWAYS_SERVED.includes(context.req.path))
      throw new SandwireError('no_issuer', `Cannot let anybody in: ${fault}`)
    return next()
  }
}
