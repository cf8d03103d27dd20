import type { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import type { Context } from 'hono'
import type { Ceilings } from '../ceilings/ceilings.ts'
import type { CommandPolicy } from '../commands/command-policy.ts'
import type { Config } from '../config.ts'
import type { GatewayGrants } from '../credentials/grants.ts'
import { CODE_HEADER, COMMON_HEADERS } from '../http/respond.ts'
import { checkHandshake } from '../http/upgrade.ts'
import { readObjectError, unwrap } from '../outcome.ts'
import { type RunStreamCall, RUN_URL } from '../run/call.ts'
import { agentsOf } from '../run/agents.ts'
import { createRun, type RunOrder } from '../run/create.ts'
import { CALL_HEADER } from '../sandbox/call.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { type App, type AppEnv, callOf, identityOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { publishBody, publishedView } from './publish-schemas.ts'
import { restoreBody, restorePointsView, toRestorePoints } from './restore-schemas.ts'
import {
  agentList,
  approvalBody,
  approvalParams,
  approvalView,
  createRunBody,
  eventsQuery,
  listRunsQuery,
  messageBody,
  messageView,
  runList,
  runParams,
  runView,
} from './run-schemas.ts'

const MAX_LISTED = 100
const MAX_EVENTS = 1_000
/** `Idempotency-Key` of a request to create a run. */
const KEY = /^[\x21-\x7e]{1,255}$/

export interface RunRouteDependencies {
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  readonly commands: CommandPolicy
  readonly config: Pick<Config, 'runs' | 'credentials'>
  readonly ceilings: Ceilings
  readonly grants: Pick<GatewayGrants, 'check'>
  readonly nowMs: () => number
}

function keyOf(headers: Headers): string | undefined {
  const key = headers.get('idempotency-key')
  if (key === null) return undefined
  if (!KEY.test(key))
    throw new SandwireError('bad_request', 'Cannot use Idempotency-Key: expected at most 255 characters')
  return key
}

/** A field that must not be used, and why. */
function refuseField(field: string, problem: string): never {
  throw new SandwireError('bad_request', `Cannot use "${field}": ${problem}`, { details: { field, problem } })
}

/** How a client wants events. */
function formOf(request: Request): RunStreamCall['form'] {
  if (checkHandshake(request).isUpgrade) return 'socket'
  return (request.headers.get('accept') ?? '').includes('text/event-stream') ? 'sse' : 'json'
}

/** The sequence number after which an `EventSource` resumes. */
function lastEventId(headers: Headers): number | undefined {
  const text = headers.get('last-event-id')
  return text !== null && /^(0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) : undefined
}

/** Without the schema in its type: the account's object has formatted the runs. */
const LISTED: Readonly<Record<200, { readonly description: string }>> = {
  200: json(runList, 'Runs of the account, newest first'),
}

/** `/api/runs`. */
export function addRunRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, mint, commands, config, ceilings, grants, nowMs }: RunRouteDependencies,
): void {
  /** The object of a run; ids that were not issued here reach none. */
  const find = async (run: string) => {
    await lookup.ofRun(run)
    return lookup.run(run)
  }

  const stream = async (
    context: Context<AppEnv>,
    run: string,
    wanted: Pick<RunStreamCall, 'what' | 'form' | 'after' | 'limit'>,
  ): Promise<Response> => {
    const object = await find(run)
    const call: RunStreamCall = { ...callOf(context), ...wanted }
    const headers = {
      [CALL_HEADER]: JSON.stringify(call),
      ...(wanted.form === 'socket' ? { upgrade: 'websocket' } : {}),
    }
    const response = await object.fetch(RUN_URL, { headers, signal: context.req.raw.signal })
    if (response.headers.has(CODE_HEADER)) throw await readObjectError(response)
    if (response.status === 101) return response
    return new Response(response.body, {
      status: response.status,
      headers: { ...Object.fromEntries(response.headers), ...COMMON_HEADERS },
    })
  }

  const sourceOf = async (
    { repo, ref, sandbox, installationId }: z.infer<typeof createRunBody>,
    account: string,
  ): Promise<RunOrder['source']> => {
    if (repo !== undefined && sandbox !== undefined) refuseField('sandbox', 'not allowed together with repo')
    if (repo === undefined && ref !== undefined) refuseField('ref', 'only allowed with repo')
    if (repo !== undefined)
      return {
        kind: 'repo',
        repo,
        ...(ref === undefined ? {} : { ref }),
        ...(installationId === undefined ? {} : { installationId }),
      }
    if (sandbox === undefined) return refuseField('repo', 'expected a repository or a sandbox')
    return { kind: 'sandbox', id: await lookup.resolve(account, parseSandboxRef(sandbox)) }
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/agents',
      responses: { 200: json(agentList, 'Coding agents that runs can use') },
    }),
    (context) =>
      context.json({ agents: agentsOf(config.runs).map(({ name, title }) => ({ name, title })) }, 200),
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/runs',
      request: { body: body(createRunBody) },
      responses: { 202: json(runView, 'The run; it begins at once, or waits as `queued`') },
    }),
    async (context) => {
      const call = callOf(context)
      const input = context.req.valid('json')
      const key = keyOf(context.req.raw.headers)
      // An agent runs any command.
      commands.checkFree(call, input.agent ?? 'claude')
      const unknown = input.hosts?.find(
        (host) => !config.credentials.hosts.some((rule) => rule.host === host),
      )
      if (unknown !== undefined) refuseField('hosts', 'the server has no header rule for one of them')
      const source = await sourceOf(input, call.identity)
      if (source.kind === 'sandbox') await checkSandbox(call, source.id, input.keep)
      const {
        task,
        context: more,
        agent,
        model,
        permission,
        limits,
        network,
        keep,
        interactive,
        hosts,
      } = input
      const order = {
        source,
        task,
        context: more,
        agent,
        model,
        permission,
        limits,
        network,
        keep,
        interactive,
        hosts,
      }
      const deps = { lookup, mint, settings: config.runs, ceilings, grants, nowMs }
      return context.json(toRunView(await createRun(deps, call, order, key)), 202)
    },
  )

  /** A run works with every right in the sandbox, and may destroy it afterwards. */
  const checkSandbox = async (
    call: ReturnType<typeof callOf>,
    id: string,
    keep: boolean | undefined,
  ): Promise<void> => {
    const { action: _action, ...unaudited } = call
    const { access } = unwrap(await lookup.sandbox(id).lastKnown(unaudited))
    if (access === 'viewer') throw new SandwireError('forbidden', 'Cannot do this: you are a viewer')
    if (keep === false && access !== undefined && access !== 'owner')
      throw new SandwireError('forbidden', 'Cannot use "keep": only the owner may have the sandbox destroyed')
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/runs',
      request: { query: listRunsQuery },
      responses: LISTED,
    }),
    async (context) => {
      const { limit, before } = context.req.valid('query')
      const count = Math.min(Number(limit ?? MAX_LISTED), MAX_LISTED)
      const runs = unwrap(await lookup.account(callOf(context).identity).runs(count, before))
      return context.body(`{"runs":${runs}}`, 200, { 'content-type': 'application/json' })
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/runs/{run}',
      request: { params: runParams },
      responses: { 200: json(runView, 'The run') },
    }),
    async (context) => {
      const run = await find(context.req.valid('param').run)
      return context.json(toRunView(unwrap(await run.describe(callOf(context)))), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/runs/{run}/events',
      request: { params: runParams, query: eventsQuery },
      responses: {
        101: { description: 'A WebSocket: one JSON text message per event; closed after the last' },
        200: { description: 'Server-sent events if accepted, else a range of events as JSON' },
      },
    }),
    async (context) => {
      const { after, limit } = context.req.valid('query')
      const request = context.req.raw
      const form = formOf(request)
      if (form === 'socket' && identityOf(context).via === 'cookie')
        throw new SandwireError('origin_refused', 'Use server-sent events here: a cookie opens no WebSocket')
      return stream(context, context.req.valid('param').run, {
        what: 'events',
        form,
        after: lastEventId(request.headers) ?? Number(after ?? 0),
        limit: Math.min(Number(limit ?? MAX_EVENTS), MAX_EVENTS),
      })
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/runs/{run}/diff',
      request: { params: runParams },
      responses: { 200: { description: 'The patch, for `git apply --binary`' } },
    }),
    (context) =>
      stream(context, context.req.valid('param').run, { what: 'diff', form: 'json', after: 0, limit: 0 }),
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/runs/{run}/messages',
      request: { params: runParams, body: body(messageBody) },
      responses: { 202: json(messageView, 'The message with its receipt') },
    }),
    async (context) => {
      const { text, id = crypto.randomUUID() } = context.req.valid('json')
      const run = await find(context.req.valid('param').run)
      return context.json(unwrap(await run.sendMessage(callOf(context), { id, text })), 202)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/runs/{run}/approvals/{request}',
      request: { params: approvalParams, body: body(approvalBody) },
      responses: { 200: json(approvalView, 'The answered request') },
    }),
    async (context) => {
      const { run: id, request } = context.req.valid('param')
      const { decision, message, answers, acceptsEdits } = context.req.valid('json')
      const run = await find(id)
      const answer = {
        requestId: request,
        decision,
        ...(message === undefined ? {} : { message }),
        ...(answers === undefined ? {} : { answers }),
        ...(acceptsEdits === undefined ? {} : { acceptsEdits }),
      }
      return context.json(unwrap(await run.answer(callOf(context), answer)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/runs/{run}/interrupt',
      request: { params: runParams },
      responses: { 202: json(runView, 'The run; its agent ends the turn and waits for a message') },
    }),
    async (context) => {
      const run = await find(context.req.valid('param').run)
      return context.json(toRunView(unwrap(await run.interrupt(callOf(context)))), 202)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/runs/{run}/abort',
      request: { params: runParams },
      responses: { 202: json(runView, 'The run; its agent is being ended, and the diff is made') },
    }),
    async (context) => {
      const run = await find(context.req.valid('param').run)
      return context.json(toRunView(unwrap(await run.abortRun(callOf(context)))), 202)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/runs/{run}/restore-points',
      request: { params: runParams },
      responses: { 200: json(restorePointsView, 'Messages with the files that are kept for them') },
    }),
    async (context) => {
      const run = await find(context.req.valid('param').run)
      return context.json(toRestorePoints(unwrap(await run.restorePoints(callOf(context)))), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/runs/{run}/restore',
      request: { params: runParams, body: body(restoreBody) },
      responses: {
        200: json(restorePointsView, 'The files are restored, and the sandbox has started again'),
      },
    }),
    async (context) => {
      const run = await find(context.req.valid('param').run)
      const points = unwrap(await run.restoreFiles(callOf(context), context.req.valid('json')))
      return context.json(toRestorePoints(points), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/runs/{run}/publish',
      request: { params: runParams, body: body(publishBody) },
      responses: { 200: json(publishedView, 'The pushed commit, and the pull request') },
    }),
    async (context) => {
      const { branch, title, body: text = '', pullRequest = false } = context.req.valid('json')
      const run = await find(context.req.valid('param').run)
      const publication = { branch, title, body: text, pullRequest }
      return context.json(unwrap(await run.publish(callOf(context), publication)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/runs/{run}',
      request: { params: runParams },
      responses: { 204: { description: 'The ended run is deleted with its events and its diff' } },
    }),
    async (context) => {
      const run = await find(context.req.valid('param').run)
      unwrap(await run.remove(callOf(context)))
      return context.body(null, 204)
    },
  )
}

/** A run as the API returns it: the schema's type has mutable lists. */
function toRunView(view: unknown): z.infer<typeof runView> {
  return view as z.infer<typeof runView>
}
