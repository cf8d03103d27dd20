import { unwrap } from '../outcome.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { resolveRetention } from '../versions/retention.ts'
import { type App, callOf, identityOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { sandboxParams } from './schemas.ts'
import { retentionBody, retentionView, toVersionList, versionList } from './version-schemas.ts'

/** Which versions of files are kept: settings of sandboxes and of accounts. */
export function addRetentionRoutes(app: App, guardOf: GuardOf, lookup: SandboxLookup): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'put',
      path: '/api/sandboxes/{sandbox}/retention',
      request: { params: sandboxParams, body: body(retentionBody) },
      responses: { 200: json(versionList, 'The versions that are left, and which are kept') },
    }),
    async (context) => {
      const call = callOf(context)
      const ref = parseSandboxRef(context.req.valid('param').sandbox)
      const sandbox = lookup.sandbox(await lookup.resolve(call.identity, ref))
      const list = unwrap(await sandbox.setRetention(call, context.req.valid('json')))
      return context.json(toVersionList(list), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/account/retention',
      responses: { 200: json(retentionView, 'For sandboxes without settings of their own') },
    }),
    async (context) => {
      const account = lookup.account(identityOf(context).account)
      return context.json(resolveRetention(unwrap(await account.retention())), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'put',
      path: '/api/account/retention',
      request: { body: body(retentionBody) },
      responses: { 200: json(retentionView, 'For sandboxes without settings of their own') },
    }),
    async (context) => {
      const account = lookup.account(identityOf(context).account)
      unwrap(await account.setRetention(context.req.valid('json')))
      return context.json(resolveRetention(unwrap(await account.retention())), 200)
    },
  )
}
