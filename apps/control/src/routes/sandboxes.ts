import { DEFAULT_SANDBOX_LIMITS, type HostHealth, encodeId } from '@sandwire/internal-api'
import { checkEnvironment } from '../commands/check-environment.ts'
import type { Config } from '../config.ts'
import { unwrap } from '../outcome.ts'
import { appliedSettings, checkPromises } from '../providers/capabilities.ts'
import type { IsolationOf } from '../providers/isolation.ts'
import type { Directory } from '../sandbox/directory.ts'
import type { SandboxSettings, SandboxView } from '../sandbox/record.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { createSandboxBody, envBody, sandboxList, sandboxParams, sandboxView, stopQuery } from './schemas.ts'
import { sharedSandboxes } from './shared-lists.ts'

/** Settings of a sandbox that was made by attaching to its name. */
export const DEFAULT_SETTINGS: SandboxSettings = {
  network: { policy: 'none', allow: [] },
  limits: DEFAULT_SANDBOX_LIMITS,
  env: {},
}

/** A name for a sandbox whose maker gave none. */
function mintName(): string {
  return `sandbox-${encodeId(crypto.getRandomValues(new Uint8Array(5)))}`
}

interface SandboxRouteDependencies {
  readonly directory: Directory
  readonly isolationOf: IsolationOf
  readonly config: Pick<Config, 'provider' | 'commands'>
}

/** `/api/sandboxes`: make, list, show, start, stop, destroy. */
export function addSandboxRoutes(
  app: App,
  guardOf: GuardOf,
  { directory, isolationOf, config }: SandboxRouteDependencies,
): void {
  const find = (account: string, text: string): Promise<string> =>
    directory.resolve(account, parseSandboxRef(text))

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/sandboxes',
      responses: {
        200: json(sandboxList, 'The sandboxes of the account by name, then those shared with it'),
      },
    }),
    async (context) => {
      const entries = unwrap(await directory.account(callOf(context).identity).sandboxes())
      const sandboxes = entries.map((entry) => entry.view).filter((view) => view !== undefined)
      const shared = await sharedSandboxes(directory, callOf(context))
      const isolation = await isolationOf(context.get('requestId'))
      return context.json({ sandboxes: [...sandboxes, ...shared].map((view) => show(view, isolation)) }, 200)
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
      const { name = mintName(), start = true, sleepAfterSeconds, ...asked } = context.req.valid('json')
      const settings: SandboxSettings = {
        network: asked.network ?? DEFAULT_SETTINGS.network,
        limits: asked.limits ?? DEFAULT_SETTINGS.limits,
        env: asked.env ?? DEFAULT_SETTINGS.env,
        ...(sleepAfterSeconds === undefined
          ? {}
          : { sleepAfterMs: sleepAfterSeconds === null ? null : sleepAfterSeconds * 1000 }),
      }
      await checkPromises(asked, async () =>
        config.provider === 'container' ? 'container' : isolationOf(call.requestId),
      )
      checkEnvironment(call, settings.env, config.commands)
      const made = await directory.create(call, name, settings, false)
      const view = start ? unwrap(await directory.sandbox(made.id).start(call)) : made
      return context.json(show(view, await isolationOf(call.requestId)), 201)
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
      const view = unwrap(await directory.sandbox(id).describe(call))
      return context.json(show(view, await isolationOf(call.requestId)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/sandboxes/{sandbox}',
      request: { params: sandboxParams },
      responses: { 204: { description: 'It is gone, files too' } },
    }),
    async (context) => {
      const call = callOf(context)
      const id = await find(call.identity, context.req.valid('param').sandbox)
      unwrap(await directory.sandbox(id).destroy(call, id))
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
      const view = unwrap(await directory.sandbox(id).start(call))
      return context.json(show(view, await isolationOf(call.requestId)), 200)
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
      const view = unwrap(await directory.sandbox(id).stop(call, discard))
      return context.json(show(view, await isolationOf(call.requestId)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'put',
      path: '/api/sandboxes/{sandbox}/env',
      request: { params: sandboxParams, body: body(envBody) },
      responses: { 200: json(sandboxView, 'The sandbox; processes get it from the next start on') },
    }),
    async (context) => {
      const call = callOf(context)
      const { env } = context.req.valid('json')
      // Before the sandbox is looked for: what the credential is good for says nothing about what there is.
      checkEnvironment(call, env, config.commands)
      const id = await find(call.identity, context.req.valid('param').sandbox)
      const view = unwrap(await directory.sandbox(id).setEnvVars(call, env))
      return context.json(show(view, await isolationOf(call.requestId)), 200)
    },
  )
}

/** A copy that may be written to, which is what the router's types ask for. */
function show(view: SandboxView, isolation: HostHealth['isolation'] | null) {
  return {
    ...view,
    isolation,
    access: view.access ?? 'owner',
    ...appliedSettings(view, isolation),
  }
}
