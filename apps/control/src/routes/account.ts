import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import { FORGET_COOKIE } from '../auth/browser-cookie.ts'
import { LOCAL_ACCOUNT } from '../auth/local-token.ts'
import { unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'
import { type App, identityOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'

const deletion = z
  .object({
    /** Sandboxes that could not be ended yet; that goes on. */
    left: z.number(),
  })
  .openapi('Deletion')

/** Deleting one's own account, with everything that is in it. */
export function addAccountRoutes(app: App, guardOf: GuardOf, directory: Directory): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/account',
      request: { body: body(z.strictObject({ confirm: z.string().min(1).max(256) })) },
      responses: { 200: json(deletion, 'The account is gone; what it was shown is not accepted any more') },
    }),
    async (context) => {
      const { account, name } = identityOf(context)
      if (account === LOCAL_ACCOUNT)
        throw new SandwireError('forbidden', "Cannot delete the account of this machine's own user")
      const { confirm } = context.req.valid('json')
      if (confirm !== account && confirm !== name)
        throw new SandwireError('bad_request', 'Cannot use "confirm": expected the name or id of the account')
      const left = unwrap(await directory.account(account).close(account))
      context.header('set-cookie', FORGET_COOKIE)
      return context.json({ left }, 200)
    },
  )
}
