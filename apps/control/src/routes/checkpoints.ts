import { z } from '@hono/zod-openapi'
import type { IsolationOf } from '../providers/isolation.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { Version } from '../versions/version-store.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { toSandboxView } from './sandboxes.ts'
import { sandboxParams, sandboxView } from './schemas.ts'

const NAME_RULE = 'expected lower-case letters, digits and hyphens (max 63), with a letter first'
const name = z
  .string({ error: NAME_RULE })
  // A letter first: a number is the number of a version.
  .regex(/^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/, NAME_RULE)
const createBody = z.strictObject({ name: name.exactOptional() }).openapi('NewCheckpoint')
const versionParams = sandboxParams.extend({
  version: z.string().regex(/^[a-z0-9-]{1,63}$/, 'expected the name or number of a version'),
})
const versionView = z
  .object({
    version: z.int(),
    name: z.string().nullable(),
    kind: z.enum(['automatic', 'checkpoint']),
    savedMs: z.int(),
    isNewest: z.boolean(),
    isFuzzy: z.boolean().openapi({ description: 'Processes ran while it was saved.' }),
    unreadable: z.int().openapi({ description: 'Number of files that could not be read.' }),
  })
  .openapi('Version')
const versionList = z.object({ versions: z.array(versionView) }).openapi('Versions')

function toVersionView(version: Version, newest: number | undefined): z.infer<typeof versionView> {
  const { number, kind, createdMs, isFuzzy, unreadable } = version
  return {
    version: number,
    name: version.name ?? null,
    kind,
    savedMs: createdMs,
    isNewest: number === newest,
    isFuzzy,
    unreadable,
  }
}

/** `/api/sandboxes/:sandbox/checkpoints`: versions of a sandbox's files. */
export function addCheckpointRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, isolationOf }: { readonly lookup: SandboxLookup; readonly isolationOf: IsolationOf },
): void {
  const find = async (account: string, text: string) =>
    lookup.sandbox(await lookup.resolve(account, parseSandboxRef(text)))

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/sandboxes/{sandbox}/checkpoints',
      request: { params: sandboxParams },
      responses: { 200: json(versionList, 'Versions of the files, newest first') },
    }),
    async (context) => {
      const call = callOf(context)
      const sandbox = await find(call.identity, context.req.valid('param').sandbox)
      const versions = unwrap(await sandbox.versions(call))
      return context.json({ versions: versions.map((each) => toVersionView(each, versions[0]?.number)) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/checkpoints',
      request: { params: sandboxParams, body: body(createBody) },
      responses: { 201: json(versionView, 'The checkpoint; it is kept until it is deleted') },
    }),
    async (context) => {
      const call = callOf(context)
      const sandbox = await find(call.identity, context.req.valid('param').sandbox)
      const version = unwrap(await sandbox.checkpoint(call, context.req.valid('json').name))
      return context.json(toVersionView(version, version.number), 201)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/sandboxes/{sandbox}/checkpoints/{version}',
      request: { params: versionParams },
      responses: { 204: { description: 'The version is deleted' } },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox: reference, version } = context.req.valid('param')
      const sandbox = await find(call.identity, reference)
      unwrap(await sandbox.removeVersion(call, version))
      return context.body(null, 204)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/checkpoints/{version}/restore',
      request: { params: versionParams },
      responses: { 200: json(sandboxView, 'The running sandbox with the files of the version') },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox: reference, version } = context.req.valid('param')
      const sandbox = await find(call.identity, reference)
      const view = unwrap(await sandbox.restoreVersion(call, version))
      return context.json(toSandboxView(view, await isolationOf(call.requestId)), 200)
    },
  )
}
