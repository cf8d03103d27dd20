import { z } from '@hono/zod-openapi'
import { COMPAT_SUBPROTOCOL, sandboxIdOf, sandboxIdOfRun } from '@sandwire/internal-api'
import { type AttachParameter, checkSubprotocols, SandwireError } from '@sandwire/protocol'
import type { Context } from 'hono'
import type { TicketBinding } from '../auth/identity.ts'
import { isSessionToken } from '../auth/session-token.ts'
import type { CompatCall } from '../compat/compat-call.ts'
import { type CommandPolicy, expandTemplate, type FilledTemplate } from '../commands/command-policy.ts'
import type { AttachLimits } from '../http/rate-limits.ts'
import { checkHandshake, isTextTerminal, offeredSubprotocols } from '../http/upgrade.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { readObjectError } from '../outcome.ts'
import { RUN_URL } from '../run/call.ts'
import { type AttachCall, CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import { type AttachRequest, parseAttachRequest } from './attach-query.ts'
import type { SessionSettings } from '../session-settings.ts'
import { type App, type AppEnv, callOf, identityOf } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { checkScope } from './guard.ts'
import { sessionParams } from './schemas.ts'

export interface AttachDependencies {
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  /** Name of the sandbox for an attach that names none. */
  readonly defaultName: string
  readonly limits: AttachLimits
  readonly log: Log
  readonly metrics: Metrics
  readonly commands: CommandPolicy
  readonly sessionNames: SessionNames
  readonly sessionSettings: SessionSettings
  /** Interfaces of coding agents. */
  readonly agentTuis: {
    /** Name of the agent whose interface the command starts. */
    readonly find: (cmd: string | null) => string | undefined
    /** Throws when it cannot be started on this server, or not yet. */
    readonly check: (agent: string) => Promise<void>
  }
}

type StartTarget = Extract<AttachRequest['target'], { kind: 'start' }>
type JoinTarget = Extract<AttachRequest['target'], { kind: 'join' }>

function isMissing(error: unknown): boolean {
  return error instanceof SandwireError && error.code === 'sandbox_not_found'
}

/** Throws `forbidden` if the ticket was issued for another sandbox or session. */
export function checkTicket(
  ticket: TicketBinding | undefined,
  target: { readonly sandbox: string; readonly session?: string },
): void {
  if (ticket === undefined || (ticket.sandbox === target.sandbox && ticket.session === target.session)) return
  throw new SandwireError('forbidden', 'Cannot use the ticket: it was issued for something else')
}

/** Forwards the attach to the sandbox's object and logs the outcome. */
async function connect(id: string, call: AttachCall, deps: AttachDependencies): Promise<Response> {
  const { lookup, log, metrics, sessionNames } = deps
  // No header of the client is forwarded.
  const headers = { upgrade: 'websocket', [CALL_HEADER]: JSON.stringify(call) }
  const response = await lookup.sandbox(id).fetch('http://sandbox/attach', { headers })
  const isOpen = response.status === 101 && response.webSocket !== null
  const error = isOpen ? undefined : await readObjectError(response)
  const code = error?.code ?? 'ok'
  metrics.count('sandwire_attaches_total', { dialect: call.dialect, outcome: code })
  log.info('attach', {
    request_id: call.requestId,
    sandbox: id,
    session: call.session ?? 'joined',
    code,
    ...(call.template === undefined ? {} : { template: call.template }),
  })
  if (error !== undefined) throw error
  const sessionHeaders = await sessionNames.headersOf(response.headers, id, call)
  return new Response(null, { status: 101, webSocket: response.webSocket, headers: sessionHeaders })
}

/**
 * Starts a process in the named sandbox, creating the sandbox if it does not exist and the caller may create it. A name can
 * be registered shortly before its sandbox exists; then the first caller creates it.
 */
export async function startSession(
  target: StartTarget,
  call: AttachCall,
  ticket: TicketBinding | undefined,
  deps: AttachDependencies,
): Promise<Response> {
  const { lookup, mint, defaultName } = deps
  const fallback =
    ticket === undefined
      ? { by: 'name' as const, name: defaultName }
      : { by: 'id' as const, id: ticket.sandbox }
  const sandbox = target.sandbox ?? fallback
  const start = (id: string): Promise<Response> => {
    checkTicket(ticket, { sandbox: id })
    return connect(id, { ...call, session: mint.mintSession(id) }, deps)
  }
  try {
    return await start(await lookup.resolve(call.identity, sandbox))
  } catch (error) {
    if (!isMissing(error) || sandbox.by === 'id' || !target.mayCreate || ticket !== undefined) throw error
    // A caller who may not create sandboxes means the one that is shared under this name.
    const mayCreate = call.scopes.includes('admin')
    if (!mayCreate && (await lookup.sharedUnder(call.identity, sandbox.name)).length > 0) throw error
    checkScope(call, 'admin')
    const created = await lookup.create(call, sandbox.name, lookup.defaultSettings, true)
    return start(created.id)
  }
}

/** The sandbox of the session; throws if the request names another sandbox. */
async function sandboxOf(
  account: string,
  { session, sandbox }: JoinTarget,
  { lookup }: AttachDependencies,
): Promise<string> {
  const id = await lookup.ofSession(session)
  if (sandbox !== undefined && (await lookup.resolve(account, sandbox)) !== id) throw noSuchSession()
  return id
}

/** Joins a session. A session of another account is reported like one that does not exist. */
export async function joinSession(
  target: JoinTarget,
  call: AttachCall,
  ticket: TicketBinding | undefined,
  deps: AttachDependencies,
): Promise<Response> {
  try {
    const sandbox = await sandboxOf(call.identity, target, deps)
    checkTicket(ticket, { sandbox, session: target.session })
    return await connect(sandbox, { ...call, joins: target.session }, deps)
  } catch (error) {
    throw isMissing(error) ? noSuchSession() : error
  }
}

/**
 * Expands the template and resolves the session token in the query. A request that names a command, or neither a template
 * nor a session, needs the right to run any command; this is checked before the query is parsed any further.
 */
async function resolveQuery(
  query: URLSearchParams,
  call: SandboxCall,
  { commands, sessionNames }: AttachDependencies,
): Promise<{ readonly query: URLSearchParams; readonly filled?: FilledTemplate }> {
  const namesCommand = query.has('cmd') || query.has('arg') || query.has('pane')
  if (namesCommand || !(query.has('template') || query.has('session')))
    commands.checkFree(call, query.get('cmd') ?? undefined)
  const expanded = expandTemplate(query, commands)
  if (expanded !== undefined) return expanded
  const [session, ...more] = query.getAll('session')
  if (session === undefined || more.length > 0) return { query }
  const resolved = new URLSearchParams(query)
  resolved.set('session', await sessionNames.resolve(session, call.identity, ['pipe', 'pty']))
  return { query: resolved }
}

/** Serves an attach of an authenticated caller; returns the sandbox's 101 or throws. */
async function attach(
  context: Context<AppEnv>,
  query: URLSearchParams,
  deps: AttachDependencies,
): Promise<Response> {
  // The same action as the sandbox's object uses, so that a refusal is audited once.
  context.set('action', query.has('session') ? 'session.join' : 'session.start')
  const request = context.req.raw
  const call = callOf(context)
  const { ticket } = identityOf(context)
  const { dialect: offered, isUpgrade } = checkHandshake(request)
  const isText = isTextTerminal(request)
  // A text terminal is translated to the dialect that has roles and screens.
  const dialect = isText ? 'v1' : offered
  if (isUpgrade && !isText) checkSubprotocols(request.headers.get('sec-websocket-protocol'))
  if (isUpgrade) await deps.limits.admit(call)
  const agentTui = query.has('template') ? undefined : deps.agentTuis.find(query.get('cmd'))
  const { query: resolved, filled } = await resolveQuery(query, call, deps)
  // A plain GET has no dialect: clients send one to learn why their upgrade failed.
  const { target, isIdempotent, ...parsed } = parseAttachRequest(
    resolved,
    isUpgrade ? dialect : 'v1',
    deps.sessionSettings,
  )
  if (agentTui !== undefined) await deps.agentTuis.check(agentTui)
  if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
  const attachCall: AttachCall = {
    ...call,
    dialect,
    isIdempotent,
    query: parsed.query,
    ...(ticket === undefined ? {} : { maxRole: ticket.role }),
    ...(filled === undefined ? {} : { template: filled.template, env: filled.env }),
    ...(agentTui === undefined ? {} : { agentTui }),
    ...(isText ? { compat: textCall(deps) } : {}),
  }
  return target.kind === 'start'
    ? startSession(target, attachCall, ticket, deps)
    : joinSession(target, attachCall, ticket, deps)
}

function textCall({ sessionSettings }: AttachDependencies): CompatCall {
  return { kind: 'text', heartbeatSeconds: sessionSettings.ptyHeartbeatSeconds }
}

/** Selects the subprotocol of text clients if it was offered: a browser that sends a ticket needs one that is selected. */
function selectTextSubprotocol(opened: Response, request: Request): Response {
  if (isTextTerminal(request) && offeredSubprotocols(request.headers).includes(COMPAT_SUBPROTOCOL))
    opened.headers.set('sec-websocket-protocol', COMPAT_SUBPROTOCOL)
  return opened
}

/** Shows a run as terminal text. A ticket for viewers takes the right to send messages away. */
async function openRunTerminal(
  context: Context<AppEnv>,
  run: string,
  { lookup, limits }: AttachDependencies,
): Promise<Response> {
  const { isUpgrade } = checkHandshake(context.req.raw)
  const { ticket } = identityOf(context)
  context.set('action', 'session.join')
  const call = callOf(context)
  if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
  await limits.admit(call)
  checkTicket(ticket, { sandbox: await lookup.ofRun(run), session: run })
  const scopes = ticket?.role === 'viewer' ? (['connect'] as const) : call.scopes
  const streamCall = { ...call, scopes, what: 'terminal', form: 'socket', after: 0, limit: 0 }
  const headers = { upgrade: 'websocket', [CALL_HEADER]: JSON.stringify(streamCall) }
  const response = await lookup.run(run).fetch(RUN_URL, { headers })
  if (response.status !== 101) throw await readObjectError(response)
  return response
}

function upgradeResponses(otherwise: string) {
  return {
    101: { description: `A WebSocket: \`sandwire.v1\` if offered, otherwise ${otherwise}` },
    426: { description: 'The request is valid but not an upgrade' },
  }
}

/** For the OpenAPI document only; `parseAttachRequest` decodes the query. */
const DESCRIPTIONS = {
  sandbox: 'Id or name; a sandbox is created for a new name',
  create: '0: do not create a sandbox',
  session: 'Join this session, by id or token; starts nothing',
  template: 'Run this command template instead of a command',
  param: 'NAME=VALUE for the template; may be repeated',
  cmd: 'Command; default: the shell',
  arg: 'Argument; may be repeated',
  pane: 'Show this pane of tmux, such as %3, instead of running a command',
  mode: 'pipe or pty',
  cwd: 'Working directory in the workspace',
  cols: 'Columns of the terminal',
  rows: 'Rows of the terminal',
  createId: '32 hex digits; repeating the request with it starts no second process',
  role: 'driver, collaborator or viewer',
  take: '1: become the driver',
  keep: 'Seconds the session lives without a connection',
  lifetime: 'Seconds from its creation until the session is ended; at most the limit of the server',
  idle: 'Seconds without input and output until an attached session is ended; at most the limit of the server',
  overflow: 'block or trim',
  pin: '1: keep the sandbox awake while the process runs',
} as const satisfies Readonly<Record<AttachParameter | 'template' | 'param', string>>

function describeParameters(names: readonly (keyof typeof DESCRIPTIONS)[]) {
  const described = names.map((name) => {
    const description = DESCRIPTIONS[name]
    return [name, z.unknown().optional().openapi({ type: 'string', description })] as const
  })
  return z.looseObject(Object.fromEntries(described))
}

const attachParameters = describeParameters(Object.keys(DESCRIPTIONS) as (keyof typeof DESCRIPTIONS)[])
const joinParameters = describeParameters(['role', 'take', 'cols', 'rows'])

/** `/attach` and `/terminal/:session`, which become WebSockets. */
export function addAttachRoutes(app: App, guardOf: GuardOf, deps: AttachDependencies): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/attach',
      request: { query: attachParameters },
      responses: upgradeResponses('the plain dialect'),
    }),
    (context) => attach(context, new URL(context.req.url).searchParams, deps),
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/terminal/{session}',
      request: { params: sessionParams, query: joinParameters },
      responses: upgradeResponses('terminal text'),
    }),
    async (context) => {
      const { session } = context.req.valid('param')
      const select = (opened: Response): Response => selectTextSubprotocol(opened, context.req.raw)
      if (sandboxIdOfRun(session) !== undefined) return select(await openRunTerminal(context, session, deps))
      const query = new URL(context.req.url).searchParams
      const isSession = isSessionToken(session) || sandboxIdOf(session) !== undefined
      if (query.has('session') || query.has('sandbox') || !isSession)
        throw new SandwireError('bad_request', 'Cannot use the session id: malformed')
      query.append('session', session)
      return select(await attach(context, query, deps))
    },
  )
}
