import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import type { AccountIds } from '../auth/account-id.ts'
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

const confirmation = body(z.strictObject({ confirm: z.string().min(1).max(256) }))

export interface AccountDependencies {
  readonly directory: Directory
  readonly accounts: Pick<AccountIds, 'isMinted'>
}

/** Deletes an account with everything that is in it; returns how many of its sandboxes have not ended yet. */
async function close(directory: Directory, account: string, confirm: string, names: readonly string[]) {
  if (account === LOCAL_ACCOUNT)
    throw new SandwireError('forbidden', "Cannot delete the account of this machine's own user")
  if (!names.includes(confirm))
    throw new SandwireError('bad_request', 'Cannot use "confirm": expected the name or id of the account')
  return unwrap(await directory.account(account).close(account))
}

/** Deleting one's own account, and as an operator that of others. */
export function addAccountRoutes(
  app: App,
  guardOf: GuardOf,
  { directory, accounts }: AccountDependencies,
): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/account',
      request: { body: confirmation },
      responses: { 200: json(deletion, 'The account is gone; what it was shown is not accepted any more') },
    }),
    async (context) => {
      const { account, name } = identityOf(context)
      const { confirm } = context.req.valid('json')
      const left = await close(directory, account, confirm, [account, name])
      context.header('set-cookie', FORGET_COOKIE)
      return context.json({ left }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/accounts/{account}',
      request: { params: z.object({ account: z.string().max(128) }), body: confirmation },
      responses: { 200: json(deletion, 'That account is gone, as if its person had deleted it') },
    }),
    async (context) => {
      const { account } = context.req.valid('param')
      if (!(await accounts.isMinted(account))) throw new SandwireError('not_found', 'No account has this id')
      const left = await close(directory, account, context.req.valid('json').confirm, [account])
      return context.json({ left }, 200)
    },
  )
}
