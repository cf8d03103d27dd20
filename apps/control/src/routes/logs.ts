import { COMMON_HEADERS } from '../http/respond.ts'
import { unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import { type App, callOf } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { logsQuery, sandboxParams } from './schemas.ts'

const DEFAULT_BYTES = 64 * 1024
const MAX_BYTES = 1024 * 1024

/** `/logs/:sandbox`: what happened to a sandbox, told by what makes it. */
export function addLogRoutes(app: App, guardOf: GuardOf, directory: Directory): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/logs/{sandbox}',
      request: { params: sandboxParams, query: logsQuery },
      responses: { 200: { description: 'The last lines, one JSON object each' } },
    }),
    async (context) => {
      const call = callOf(context)
      const ref = parseSandboxRef(context.req.valid('param').sandbox)
      const id = await directory.resolve(call.identity, ref)
      const bytes = Math.min(Number(context.req.valid('query').bytes ?? DEFAULT_BYTES), MAX_BYTES)
      const headers = { ...COMMON_HEADERS, 'content-type': 'application/x-ndjson' }
      return new Response(unwrap(await directory.sandbox(id).logs(call, bytes)), { headers })
    },
  )
}
