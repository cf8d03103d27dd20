import type { z } from '@hono/zod-openapi'
import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { CommandPolicy } from '../commands/command-policy.ts'
import { COMMON_HEADERS } from '../http/respond.ts'
import { unwrap } from '../outcome.ts'
import type { TuiUsage } from '../run/record.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import type { ProcessRequest, StartOptions } from '../sandbox/sessions.ts'
import { type App, callOf, noteCommand } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import {
  execBody,
  execResult,
  namedSessionView,
  outputQuery,
  sandboxParams,
  sandboxSessionParams,
  sessionList,
  sessionParams,
  sessionView,
  startProcessBody,
} from './schemas.ts'
import { findSandbox, findSandboxOfSession, unwrapSession } from './find-sandbox.ts'
import { sharedSessions } from './shared-lists.ts'

/** How long a list of sessions waits for a sandbox that does not respond. */
const REFRESH_MS = 2_000
/** Interfaces of agents in one list whose spend is read. */
const MAX_SPENDS = 32

/** For callers that send no create id and so cannot repeat the request. */
function mintCreateId(): string {
  return crypto.randomUUID().replaceAll('-', '')
}

/** The request for sandboxd, without fields that are undefined. */
function toProcess({
  createId = mintCreateId(),
  ...rest
}: Partial<Record<string, unknown>> & { createId?: string | undefined }): ProcessRequest {
  const given = Object.entries(rest).filter(([, value]) => value !== undefined)
  return { createId, ...Object.fromEntries(given) }
}

export interface SessionRouteDependencies {
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  readonly commands: CommandPolicy
  readonly sessionNames: SessionNames
  readonly agentTuis: {
    /** What the interface of an agent in a session has spent; undefined where there is no grant. */
    readonly usage: (session: string) => Promise<TuiUsage | undefined>
  }
}

type StartBody = z.infer<typeof startProcessBody>

/** Fields that a template defines and a caller must not send. */
const TEMPLATE_FIELDS = ['cmd', 'args', 'pane', 'env', 'mode', 'cwd'] as const

/** The process to start: the caller's own command, or that of a template. */
function readStart(
  { template, params, pinned = false, ...request }: StartBody,
  call: SandboxCall,
  commands: CommandPolicy,
): { readonly call: SandboxCall; readonly request: ProcessRequest; readonly start: StartOptions } {
  if (template === undefined) {
    commands.checkFree(call, request.cmd)
    if (params !== undefined)
      throw new SandwireError('bad_request', 'Cannot use "params": no template was given')
    return { call, request: toProcess(request), start: { pinned } }
  }
  const refused = TEMPLATE_FIELDS.find((name) => request[name] !== undefined)
  if (refused !== undefined)
    throw new SandwireError('bad_request', `Cannot use "${refused}": a template was given`)
  const { template: id, env, cmd, args, mode, cwd } = commands.fill(template, Object.entries(params ?? {}))
  return {
    call: { ...call, template: id },
    request: toProcess({ ...request, cmd, args, mode, cwd }),
    start: { pinned, env },
  }
}

/** Sessions of an account and of one sandbox. */
export function addSessionRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, mint, commands, sessionNames, agentTuis }: SessionRouteDependencies,
): void {
  /** Refreshes the sessions of running sandboxes; one that does not respond keeps its last known sessions. */
  const refresh = async (call: SandboxCall): Promise<void> => {
    const entries = unwrap(await lookup.account(call.identity).sandboxes())
    const running = entries.filter(({ view }) => view?.state === 'running')
    const refreshOne = async (id: string): Promise<void> => {
      await lookup.sandbox(id).refreshSessions(call)
    }
    await Promise.allSettled(
      running.map(({ id }) => withTimeout(refreshOne(id), REFRESH_MS, () => new Error('Timed out'))),
    )
  }

  /** Adds what interfaces of agents have spent. */
  const withUsage = async <T extends Pick<SessionFacts, 'id' | 'agentInterface'>>(sessions: readonly T[]) => {
    const interfaces = sessions.filter(({ agentInterface }) => agentInterface === true).slice(0, MAX_SPENDS)
    const read = interfaces.map(async ({ id }) => [id, await agentTuis.usage(id)] as const)
    const usages = new Map(await Promise.all(read))
    return sessions.map((session) => ({ ...session, ...usages.get(session.id) }))
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/account/sessions',
      responses: { 200: json(sessionList, 'The sessions of all sandboxes of the account') },
    }),
    async (context) => {
      const call = callOf(context)
      await refresh(call)
      const sessions = unwrap(await lookup.account(call.identity).sessions())
      const own = sessions.map((session) => ({ ...session, access: 'owner' as const }))
      const all = [...own, ...(await sharedSessions(lookup, call))]
      return context.json({ sessions: await withUsage(all) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/account/sessions/{session}',
      request: { params: sessionParams },
      responses: { 200: json(namedSessionView, 'The session') },
    }),
    async (context) => {
      const { session } = context.req.valid('param')
      const sandbox = await findSandboxOfSession(lookup, session)
      const call = callOf(context)
      const facts = unwrapSession(await lookup.sandbox(sandbox).showSession(call, session))
      const names = await sessionNames.tokenOf(facts, call.identity)
      const [shown = facts] = await withUsage([facts])
      return context.json({ ...shown, sandbox, ...names }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/account/sessions/{session}',
      request: { params: sessionParams },
      responses: {
        202: json(sessionView, 'The process is being terminated; attached clients receive its exit'),
      },
    }),
    async (context) => {
      const { session } = context.req.valid('param')
      const sandbox = await findSandboxOfSession(lookup, session)
      const facts = unwrapSession(await lookup.sandbox(sandbox).endSession(callOf(context), session))
      return context.json({ ...facts, sandbox }, 202)
    },
  )

  for (const method of ['put', 'delete'] as const)
    app.openapi(
      endpoint(guardOf, {
        method,
        path: '/api/account/sessions/{session}/pin',
        request: { params: sessionParams },
        responses: { 204: { description: 'The pin is set or removed' } },
      }),
      async (context) => {
        const { session } = context.req.valid('param')
        const object = lookup.sandbox(await findSandboxOfSession(lookup, session))
        unwrapSession(await object.pinSession(callOf(context), session, method === 'put'))
        return context.body(null, 204)
      },
    )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/sessions',
      request: { params: sandboxParams, body: body(startProcessBody) },
      responses: { 201: json(namedSessionView, 'The session; attach to it by its id') },
    }),
    async (context) => {
      const body = context.req.valid('json')
      noteCommand(context, body.cmd)
      const { call, request, start } = readStart(body, callOf(context), commands)
      const ref = parseSandboxRef(context.req.valid('param').sandbox)
      const sandbox = await lookup.resolve(call.identity, ref)
      const object = lookup.sandbox(sandbox)
      const facts = unwrap(await object.startProcess(call, mint.mintSession(sandbox), request, start))
      return context.json({ ...facts, sandbox, ...(await sessionNames.tokenOf(facts, call.identity)) }, 201)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/exec',
      request: { params: sandboxParams, body: body(execBody) },
      responses: { 200: json(execResult, 'Output and exit status of the process') },
    }),
    async (context) => {
      const call = callOf(context)
      const ref = parseSandboxRef(context.req.valid('param').sandbox)
      const sandbox = await lookup.resolve(call.identity, ref)
      const { timeoutSeconds, ...request } = context.req.valid('json')
      noteCommand(context, request.cmd)
      commands.checkFree(call, request.cmd)
      const object = lookup.sandbox(sandbox)
      const session = mint.mintSession(sandbox)
      const result = unwrap(await object.exec(call, session, toProcess(request), timeoutSeconds * 1000))
      return context.json(result, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/sandboxes/{sandbox}/sessions/{session}/output',
      request: { params: sandboxSessionParams, query: outputQuery },
      responses: {
        200: { description: 'Bytes of both streams in order; the `sandwire-*` headers have the offsets' },
      },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox, session } = context.req.valid('param')
      const id = await findSandbox(lookup, call.identity, { sandbox, session })
      const from = Number(context.req.valid('query').from ?? '0')
      const part = unwrapSession(await lookup.sandbox(id).sessionOutput(call, session, from))
      return new Response(part.bytes, {
        headers: {
          ...COMMON_HEADERS,
          'content-type': 'application/octet-stream',
          'content-disposition': 'attachment; filename="output"',
          'sandwire-from': String(part.from),
          'sandwire-next': String(part.next),
          'sandwire-end': String(part.end),
        },
      })
    },
  )
}
