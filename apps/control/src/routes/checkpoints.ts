import { z } from '@hono/zod-openapi'
import { pathFromBytes, SandwireError } from '@sandwire/protocol'
import { compareVersions, latin1Bytes } from '@sandwire/version-format'
import type { IsolationOf } from '../providers/isolation.ts'
import { COMMON_HEADERS } from '../http/respond.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { Charge, ReadBudget } from '../versions/read-budget.ts'
import type { SegmentStore } from '../versions/segment-store.ts'
import { VersionReader } from '../versions/version-reader.ts'
import { ZSTANDARD } from '../versions/zstandard.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { toSandboxView } from './sandboxes.ts'
import { sandboxParams, sandboxView } from './schemas.ts'
import {
  diffQuery,
  diffView,
  newCheckpoint,
  newFork,
  toVersionList,
  toVersionView,
  versionList,
  versionParams,
  versionView,
} from './version-schemas.ts'

/** Differences in one response. */
const MAX_CHANGES = 10_000
/** What a rebuild counts as, of bytes that are read: one in two minutes. */
const REBUILD_BYTES = 256 * 1024 * 1024
/** Comparing takes longer than reading. */
const COMPARE_FACTOR = 4

interface CheckpointDependencies {
  readonly lookup: SandboxLookup
  readonly isolationOf: IsolationOf
  /** Undefined: files are not saved. */
  readonly segments: SegmentStore | undefined
  readonly versionReads: ReadBudget
}

/** `/api/sandboxes/:sandbox/checkpoints`: versions of a sandbox's files. */
export function addCheckpointRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, isolationOf, segments, versionReads }: CheckpointDependencies,
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
      return context.json(toVersionList(unwrap(await sandbox.versions(call))), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/checkpoints',
      request: { params: sandboxParams, body: body(newCheckpoint) },
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
      method: 'get',
      path: '/api/sandboxes/{sandbox}/events',
      request: { params: sandboxParams },
      responses: {
        200: {
          description: 'Server-sent events about saving and restoring files',
          content: { 'text/event-stream': { schema: z.string() } },
        },
      },
    }),
    async (context) => {
      const call = callOf(context)
      const sandbox = await find(call.identity, context.req.valid('param').sandbox)
      const events = unwrap(await sandbox.statusEvents(call))
      const headers = { ...COMMON_HEADERS, 'content-type': 'text/event-stream', 'cache-control': 'no-store' }
      return new Response(events, { headers })
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/checkpoints/rebuild',
      request: { params: sandboxParams },
      responses: { 200: json(versionList, 'Versions of the files, with those that only the store had') },
    }),
    async (context) => {
      const call = callOf(context)
      const sandbox = await find(call.identity, context.req.valid('param').sandbox)
      // Counted apart, so that versions can be read afterwards.
      const list = await versionReads.run(`rebuild ${call.identity}`, async (charge) => {
        const rebuilt = unwrap(await sandbox.rebuildVersions(call))
        // A caller without access costs nothing, and must not keep an owner waiting.
        charge(REBUILD_BYTES)
        return rebuilt
      })
      return context.json(toVersionList(list), 200)
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

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/checkpoints/{version}/fork',
      request: { params: versionParams, body: body(newFork) },
      responses: { 201: json(sandboxView, 'The new sandbox; it runs unless `start` was false') },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox: reference, version } = context.req.valid('param')
      const { name, start = true } = context.req.valid('json')
      const parent = await find(call.identity, reference)
      const settings = unwrap(await parent.forkSettings(call, version))
      const created = await lookup.create(call, name, settings, false)
      const fork = lookup.sandbox(created.id)
      try {
        unwrap(await fork.adoptFork(call, unwrap(await parent.addFork(call, version, created.id))))
        const view = start ? unwrap(await fork.start(call)) : created
        return context.json(toSandboxView(view, await isolationOf(call.requestId)), 201)
      } catch (error) {
        // A sandbox without the files would have the name. If it cannot be destroyed now, it is later.
        await fork.destroy({ ...call, action: 'sandbox.destroy' }, created.id)
        throw error
      }
    },
  )

  const readIndex = async (
    call: SandboxCall,
    sandbox: string,
    version: string | undefined,
    charge: Charge,
  ) => {
    const content = unwrap(await (await find(call.identity, sandbox)).versionContent(call, version))
    if (segments === undefined) throw new SandwireError('not_found', 'This server does not save files')
    return {
      number: content.version.number,
      index: await new VersionReader(segments, ZSTANDARD, content, charge).index(),
    }
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/sandboxes/{sandbox}/checkpoints/{version}/diff',
      request: { params: versionParams, query: diffQuery },
      responses: { 200: json(diffView, 'What differs between two versions, at most 10,000 entries') },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox, version } = context.req.valid('param')
      const { to } = context.req.valid('query')
      const diff = await versionReads.run(call.identity, async (charge) => {
        const chargeAll: Charge = (bytes) => charge(COMPARE_FACTOR * bytes)
        const before = await readIndex(call, sandbox, version, chargeAll)
        const after = await readIndex(call, sandbox, to, chargeAll)
        const found = compareVersions(before.index, after.index)
        const changes = found
          .take(MAX_CHANGES)
          .map((change) => ({ ...change, path: pathFromBytes(latin1Bytes(change.path)) }))
          .toArray()
        return {
          from: before.number,
          to: after.number,
          changes,
          isComplete: changes.length < MAX_CHANGES,
        }
      })
      return context.json(diff, 200)
    },
  )
}
