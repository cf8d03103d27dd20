import type { z } from '@hono/zod-openapi'
import { withTimeout } from '@sandwire/async'
import { sandboxIdOf } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { CommandPolicy } from '../commands/command-policy.ts'
import { COMMON_HEADERS } from '../http/respond.ts'
import { type Outcome, unwrap } from '../outcome.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { Directory } from '../sandbox/directory.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
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
import { sharedSessions } from './shared-lists.ts'

/** How long a list of sessions waits for a sandbox that does not answer. */
const REFRESH_MS = 2_000

/** A create id for callers that gave none: they cannot repeat the request. */
function mintCreateId(): string {
  return crypto.randomUUID().replaceAll('-', '')
}

/** The request as sandboxd takes it: what was not said is left out, not undefined. */
function toProcess({
  createId = mintCreateId(),
  ...rest
}: Partial<Record<string, unknown>> & { createId?: string | undefined }): ProcessRequest {
  const said = Object.entries(rest).filter(([, value]) => value !== undefined)
  return { createId, ...Object.fromEntries(said) }
}

/** The answer about a session; not yours and not there look the same. */
function unwrapSession<T>(outcome: Outcome<T>): T {
  if (!outcome.ok && outcome.code === 'sandbox_not_found') throw noSuchSession()
  return unwrap(outcome)
}

export interface SessionRouteDependencies {
  readonly directory: Directory
  readonly mint: IdMint
  readonly commands: CommandPolicy
  readonly sessionNames: SessionNames
}

type StartBody = z.infer<typeof startProcessBody>

/** What a template says itself, so that a caller cannot. */
const SAID_BY_TEMPLATE = ['cmd', 'args', 'env', 'mode', 'cwd'] as const

/** What is to be started: a command of the caller's own, or one that a template makes. */
function readStart(
  { template, params, pinned = false, ...request }: StartBody,
  call: SandboxCall,
  commands: CommandPolicy,
): { readonly call: SandboxCall; readonly request: ProcessRequest; readonly start: StartOptions } {
  if (template === undefined) {
    commands.checkFree(call, request.cmd)
    if (params !== undefined)
      throw new SandwireError('bad_request', 'Cannot use "params": there is no template')
    return { call, request: toProcess(request), start: { pinned } }
  }
  const refused = SAID_BY_TEMPLATE.find((name) => request[name] !== undefined)
  if (refused !== undefined)
    throw new SandwireError('bad_request', `Cannot use "${refused}": a template was given`)
  const { template: id, env, cmd, args, mode, cwd } = commands.fill(template, Object.entries(params ?? {}))
  return {
    call: { ...call, template: id },
    request: toProcess({ ...request, cmd, args, mode, cwd }),
    start: { pinned, env },
  }
}

/** Sessions: across the account, and in one sandbox. */
export function addSessionRoutes(
  app: App,
  guardOf: GuardOf,
  { directory, mint, commands, sessionNames }: SessionRouteDependencies,
): void {
  const placeOf = async (session: string): Promise<string> => {
    if (sandboxIdOf(session) === undefined)
      throw new SandwireError('bad_request', 'Cannot use the session id: it is not spelled like one')
    return directory.ofSession(session)
  }

  /** Asks the sandboxes that run what runs in them; one that does not answer keeps what was last known. */
  const refresh = async (call: SandboxCall): Promise<void> => {
    const entries = unwrap(await directory.account(call.identity).sandboxes())
    const running = entries.filter(({ view }) => view?.state === 'running')
    const ask = async (id: string): Promise<void> => {
      await directory.sandbox(id).refreshSessions(call)
    }
    await Promise.allSettled(
      running.map(({ id }) => withTimeout(ask(id), REFRESH_MS, () => new Error('It does not answer'))),
    )
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
      const sessions = unwrap(await directory.account(call.identity).sessions())
      const own = sessions.map((session) => ({ ...session, access: 'owner' as const }))
      return context.json({ sessions: [...own, ...(await sharedSessions(directory, call))] }, 200)
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
      const sandbox = await placeOf(session)
      const call = callOf(context)
      const facts = unwrapSession(await directory.sandbox(sandbox).showSession(call, session))
      return context.json({ ...facts, sandbox, ...(await sessionNames.tokenOf(facts, call.identity)) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/account/sessions/{session}',
      request: { params: sessionParams },
      responses: { 202: json(sessionView, 'Its process is being ended; attached clients see the exit') },
    }),
    async (context) => {
      const { session } = context.req.valid('param')
      const sandbox = await placeOf(session)
      const facts = unwrapSession(await directory.sandbox(sandbox).endSession(callOf(context), session))
      return context.json({ ...facts, sandbox }, 202)
    },
  )

  for (const method of ['put', 'delete'] as const)
    app.openapi(
      endpoint(guardOf, {
        method,
        path: '/api/account/sessions/{session}/pin',
        request: { params: sessionParams },
        responses: { 204: { description: 'Whether the sandbox stays awake for it is noted' } },
      }),
      async (context) => {
        const { session } = context.req.valid('param')
        const object = directory.sandbox(await placeOf(session))
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
      const asked = context.req.valid('json')
      noteCommand(context, asked.cmd)
      const { call, request, start } = readStart(asked, callOf(context), commands)
      const ref = parseSandboxRef(context.req.valid('param').sandbox)
      const sandbox = await directory.resolve(call.identity, ref)
      const object = directory.sandbox(sandbox)
      const facts = unwrap(await object.startProcess(call, mint.mintSession(sandbox), request, start))
      return context.json({ ...facts, sandbox, ...(await sessionNames.tokenOf(facts, call.identity)) }, 201)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/sandboxes/{sandbox}/exec',
      request: { params: sandboxParams, body: body(execBody) },
      responses: { 200: json(execResult, 'What the process wrote and how it ended') },
    }),
    async (context) => {
      const call = callOf(context)
      const ref = parseSandboxRef(context.req.valid('param').sandbox)
      const sandbox = await directory.resolve(call.identity, ref)
      const { timeoutSeconds, ...request } = context.req.valid('json')
      noteCommand(context, request.cmd)
      commands.checkFree(call, request.cmd)
      const object = directory.sandbox(sandbox)
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
      responses: { 200: { description: 'Bytes of both streams in order; `sandwire-*` headers say which' } },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox, session } = context.req.valid('param')
      const place = await placeOf(session)
      if ((await directory.resolve(call.identity, parseSandboxRef(sandbox))) !== place) throw noSuchSession()
      const from = Number(context.req.valid('query').from ?? '0')
      const part = unwrapSession(await directory.sandbox(place).sessionOutput(call, session, from))
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
