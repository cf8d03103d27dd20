import { type HostHealth, encodeId } from '@sandwire/internal-api'
import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { present } from '../ceilings/ceilings.ts'
import { checkEnvironment } from '../commands/command-policy.ts'
import type { Config } from '../config.ts'
import { COMMON_HEADERS } from '../http/respond.ts'
import { unwrap } from '../outcome.ts'
import { enforcedSettings, checkEnforced } from '../providers/capabilities.ts'
import type { IsolationOf } from '../providers/isolation.ts'
import { retryIdempotent } from '../providers/retry.ts'
import type { FindOutdated } from '../providers/running.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import type { SandboxSettings, SandboxView } from '../sandbox/record.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import {
  createSandboxBody,
  envBody,
  logsQuery,
  sandboxList,
  sandboxParams,
  sandboxView,
  stopQuery,
} from './schemas.ts'
import { currentViews, sharedSandboxes } from './shared-lists.ts'

const DEFAULT_LOG_BYTES = 64 * 1024
const MAX_LOG_BYTES = 1024 * 1024

/** Errors that a full disk causes; workerd does not report all of them as such. */
const DISK_FULL_CODES: ReadonlySet<ErrorCode> = new Set(['internal', 'sandbox_failed'])
/** The host releases space for control within a second. */
const RELEASE_MS = 1_200

/** The name of a sandbox that is created without one. */
function mintName(): string {
  return `sandbox-${encodeId(crypto.getRandomValues(new Uint8Array(5)))}`
}

interface SandboxRouteDependencies {
  readonly lookup: SandboxLookup
  readonly isolationOf: IsolationOf
  readonly findOutdated: FindOutdated
  readonly config: Pick<Config, 'provider' | 'commands'>
  readonly sleep: (ms: number) => Promise<void>
}

/** `/api/sandboxes` and `/logs/:sandbox`. */
export function addSandboxRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, isolationOf, findOutdated, config, sleep }: SandboxRouteDependencies,
): void {
  const find = (account: string, text: string): Promise<string> =>
    lookup.resolve(account, parseSandboxRef(text))

  /** Starts a new sandbox; where there is no room for it, the request creates nothing. */
  const startNew = async (call: SandboxCall, id: string): Promise<SandboxView> => {
    const sandbox = lookup.sandbox(id)
    const started = await sandbox.start(call)
    // If it cannot be destroyed now, it is later.
    if (!started.ok && started.code === 'ceiling_exceeded')
      await sandbox.destroy({ ...call, action: 'sandbox.destroy' }, id)
    return unwrap(started)
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/sandboxes',
      responses: {
        200: json(sandboxList, 'The sandboxes of the account by name, then those shared with it'),
      },
    }),
    async (context) => {
      const call = callOf(context)
      const entries = unwrap(await lookup.account(call.identity).sandboxes())
      const known = entries.map((entry) => entry.view).filter((view) => view !== undefined)
      const isOutdated = await findOutdated(call.requestId)
      const sandboxes = await currentViews(lookup, call, known, isOutdated)
      const shared = await currentViews(lookup, call, await sharedSandboxes(lookup, call), isOutdated)
      const isolation = await isolationOf(context.get('requestId'))
      return context.json(
        { sandboxes: [...sandboxes, ...shared].map((view) => toSandboxView(view, isolation)) },
        200,
      )
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes',
      request: { body: body(createSandboxBody) },
      responses: { 201: json(sandboxView, 'The sandbox; it runs unless `start` was false') },
    }),
    async (context) => {
      const call = callOf(context)
      const { name = mintName(), start = true, sleepAfterSeconds, ...input } = context.req.valid('json')
      const defaults = lookup.defaultSettings
      const settings: SandboxSettings = {
        network: input.network ?? defaults.network,
        limits: { ...defaults.limits, ...present(input.limits ?? {}) },
        env: input.env ?? defaults.env,
        ...(sleepAfterSeconds === undefined
          ? {}
          : { sleepAfterMs: sleepAfterSeconds === null ? null : sleepAfterSeconds * 1000 }),
      }
      await checkEnforced(input, defaults.limits, async () =>
        config.provider === 'container' ? 'container' : isolationOf(call.requestId),
      )
      checkEnvironment(call, settings.env, config.commands)
      const created = await lookup.create(call, name, settings, false)
      const view = start ? await startNew(call, created.id) : created
      return context.json(toSandboxView(view, await isolationOf(call.requestId)), 201)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/sandboxes/{sandbox}',
      request: { params: sandboxParams },
      responses: { 200: json(sandboxView, 'The sandbox') },
    }),
    async (context) => {
      const call = callOf(context)
      const id = await find(call.identity, context.req.valid('param').sandbox)
      const view = unwrap(await lookup.sandbox(id).describe(call))
      return context.json(toSandboxView(view, await isolationOf(call.requestId)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/sandboxes/{sandbox}',
      request: { params: sandboxParams },
      responses: { 204: { description: 'The sandbox is destroyed with its files' } },
    }),
    async (context) => {
      const call = callOf(context)
      const id = await find(call.identity, context.req.valid('param').sandbox)
      await retryIdempotent(async () => unwrap(await lookup.sandbox(id).destroy(call, id)), {
        isWorthRetrying: (error) => DISK_FULL_CODES.has(SandwireError.from(error).code),
        sleep: () => sleep(RELEASE_MS),
        random: () => Math.random(),
      })
      return context.body(null, 204)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/start',
      request: { params: sandboxParams },
      responses: { 200: json(sandboxView, 'The running sandbox') },
    }),
    async (context) => {
      const call = callOf(context)
      const id = await find(call.identity, context.req.valid('param').sandbox)
      const view = unwrap(await lookup.sandbox(id).start(call))
      return context.json(toSandboxView(view, await isolationOf(call.requestId)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/stop',
      request: { params: sandboxParams, query: stopQuery },
      responses: { 200: json(sandboxView, 'The stopped sandbox') },
    }),
    async (context) => {
      const call = callOf(context)
      const id = await find(call.identity, context.req.valid('param').sandbox)
      const discard = context.req.valid('query').discard === '1'
      const view = unwrap(await lookup.sandbox(id).stop(call, discard))
      return context.json(toSandboxView(view, await isolationOf(call.requestId)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'put',
      path: '/api/sandboxes/{sandbox}/env',
      request: { params: sandboxParams, body: body(envBody) },
      responses: { 200: json(sandboxView, 'The sandbox; takes effect at its next start') },
    }),
    async (context) => {
      const call = callOf(context)
      const { env } = context.req.valid('json')
      // Checked before the lookup, so that the error reveals nothing about the sandbox.
      checkEnvironment(call, env, config.commands)
      const id = await find(call.identity, context.req.valid('param').sandbox)
      const view = unwrap(await lookup.sandbox(id).setEnvVars(call, env))
      return context.json(toSandboxView(view, await isolationOf(call.requestId)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/logs/{sandbox}',
      request: { params: sandboxParams, query: logsQuery },
      responses: { 200: { description: 'The last lines, one JSON object per line' } },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox } = context.req.valid('param')
      const bytes = Math.min(Number(context.req.valid('query').bytes ?? DEFAULT_LOG_BYTES), MAX_LOG_BYTES)
      const headers = { ...COMMON_HEADERS, 'content-type': 'application/x-ndjson' }
      try {
        const id = await find(call.identity, sandbox)
        return new Response(unwrap(await lookup.sandbox(id).logs(call, bytes)), { headers })
      } catch (error) {
        if (SandwireError.from(error).code !== 'sandbox_not_found') throw error
        // The account has the last lines of sandboxes that it destroyed.
        const kept = unwrap(await lookup.account(call.identity).destroyedLog(sandbox))
        if (kept === null) throw error
        return new Response(lastLines(kept, bytes), { headers })
      }
    },
  )
}

/** The last whole lines of a text, at most this many characters. */
function lastLines(text: string, chars: number): string {
  if (text.length <= chars) return text
  const end = text.slice(-chars)
  return end.slice(end.indexOf('\n') + 1)
}

/** The sandbox as the API returns it. */
export function toSandboxView(view: SandboxView, isolation: HostHealth['isolation'] | null) {
  return {
    ...view,
    isolation,
    access: view.access ?? 'owner',
    ...enforcedSettings(view, isolation),
  }
}
