import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import { unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'
import { type App, identityOf } from './context.ts'
import { endpoint, type GuardOf, json } from './endpoint.ts'

const signInList = z
  .object({
    signIns: z.array(
      z.object({
        login: z.string(),
        /** Id of the issuer; null: a link that the host printed. */
        issuer: z.string().nullable(),
        name: z.string(),
        scopes: z.array(z.string()),
        createdMs: z.number(),
        expiresMs: z.number(),
        /** Whether it is the one that asks. */
        current: z.boolean(),
      }),
    ),
  })
  .openapi('SignIns')

/** The browsers signed in to one's own account. */
export function addSignInListRoutes(app: App, guardOf: GuardOf, directory: Directory): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/account/sign-ins',
      responses: { 200: json(signInList, 'Oldest first') },
    }),
    async (context) => {
      const identity = identityOf(context)
      const all = unwrap(await directory.account(identity.account).signIns())
      const signIns = all.map(({ login, issuer, name, scopes, createdMs, expiresMs }) => ({
        login,
        issuer,
        name,
        scopes: [...scopes],
        createdMs,
        expiresMs,
        current: login === identity.login,
      }))
      return context.json({ signIns }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/account/sign-ins/{login}',
      request: { params: z.object({ login: z.string().regex(/^[\w-]{1,64}$/) }) },
      responses: { 204: { description: 'That browser is signed out' } },
    }),
    async (context) => {
      const { login } = context.req.valid('param')
      const ended = unwrap(await directory.account(identityOf(context).account).signOut(login))
      if (ended === null) throw new SandwireError('not_found', 'No such sign-in')
      return context.body(null, 204)
    },
  )
}
