import { checkSubprotocols, type ErrorCode, SandwireError } from '@sandwire/protocol'
import type { CommandPolicy } from '../commands/command-policy.ts'
import type { FilledTemplate } from '../commands/fill-template.ts'
import { expandTemplate } from '../commands/template-query.ts'
import type { TicketBinding } from '../auth/authenticator.ts'
import type { AttachLimits } from '../http/attach-limits.ts'
import { isEnvelopePath, readUpgrade } from '../http/upgrade.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { type AttachCall, CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import type { Directory } from '../sandbox/directory.ts'
import { noSuchSession } from '../sandbox/missing.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import { type AttachQuery, parseAttachQuery } from './attach-query.ts'
import { checkScope } from './guard.ts'
import { readError } from './object-error.ts'
import { DEFAULT_SETTINGS } from './sandboxes.ts'

export interface AttachDependencies {
  readonly directory: Directory
  readonly mint: IdMint
  /** Name of the sandbox of an attach that names none. */
  readonly defaultName: string
  readonly limits: AttachLimits
  readonly log: Log
  readonly metrics: Metrics
  readonly commands: CommandPolicy
  readonly sessionNames: SessionNames
}

/**
 * Whether a refusal is told in a frame, because browsers cannot read a refused upgrade. Only to who has shown a good
 * credential: a socket is more than a stranger gets.
 */
export function isToldInFrame(request: Request, code: ErrorCode, isKnown: boolean): boolean {
  const { isUpgrade, isWellFormed, dialect } = readUpgrade(request)
  const canRead = dialect === 'v1' || isEnvelopePath(new URL(request.url).pathname)
  return isKnown && isUpgrade && isWellFormed && canRead && code !== 'internal'
}

function isMissing(error: unknown): boolean {
  return error instanceof SandwireError && error.code === 'sandbox_not_found'
}

/**
 * Starts a process in the sandbox that is named, which is made when it is missing and that is allowed. A name can be
 * known a moment before its sandbox is there; then whoever comes first makes it.
 */
export async function startIn(
  target: Extract<AttachQuery['target'], { kind: 'start' }>,
  call: AttachCall,
  ticket: TicketBinding | undefined,
  deps: AttachDependencies,
): Promise<Response> {
  const { directory, mint, defaultName } = deps
  const usual =
    ticket === undefined
      ? { by: 'name' as const, name: defaultName }
      : { by: 'id' as const, id: ticket.sandbox }
  const sandbox = target.sandbox ?? usual
  const start = (id: string): Promise<Response> => {
    checkTicket(ticket, { sandbox: id })
    return connect(id, { ...call, session: mint.mintSession(id) }, deps)
  }
  try {
    return await start(await directory.resolve(call.identity, sandbox))
  } catch (error) {
    if (!isMissing(error) || sandbox.by === 'id' || !target.mayCreate || ticket !== undefined) throw error
    // Who may make none is not about to: they mean one that is there.
    const mayMake = call.scopes.includes('admin')
    if (!mayMake && (await directory.sharedUnder(call.identity, sandbox.name)).length > 0) throw error
    // As making one by name alone does.
    checkScope(call, 'admin')
    const made = await directory.create(call, sandbox.name, DEFAULT_SETTINGS, true)
    return start(made.id)
  }
}

/** The sandbox of a session that is asked for; a sandbox named beside it must be the same. */
async function placeOfSession(
  account: string,
  { session, sandbox }: Extract<AttachQuery['target'], { kind: 'join' }>,
  { directory }: AttachDependencies,
): Promise<string> {
  const id = await directory.ofSession(session)
  if (sandbox !== undefined && (await directory.resolve(account, sandbox)) !== id) throw noSuchSession()
  return id
}

/** Asks the sandbox's object, and writes down what came of it. */
async function connect(id: string, call: AttachCall, deps: AttachDependencies): Promise<Response> {
  const { directory, log, metrics, sessionNames } = deps
  // Nothing of the caller's headers goes along.
  const headers = { upgrade: 'websocket', [CALL_HEADER]: JSON.stringify(call) }
  const response = await directory.sandbox(id).fetch('http://sandbox/attach', { headers })
  const isOpen = response.status === 101 && response.webSocket !== null
  const error = isOpen ? undefined : await readError(response)
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
  const ours = await sessionNames.headersOf(response.headers, id, call)
  return new Response(null, { status: 101, webSocket: response.webSocket, headers: ours })
}

/** Throws `forbidden` unless the ticket was given for this. Where there is none, the credential decides alone. */
function checkTicket(
  ticket: TicketBinding | undefined,
  asked: { readonly sandbox: string; readonly session?: string },
): void {
  if (ticket === undefined || (ticket.sandbox === asked.sandbox && ticket.session === asked.session)) return
  throw new SandwireError('forbidden', 'Cannot use the ticket: it was given for something else')
}

/**
 * The query with a template's command in its place, and with the session's id in the place of its token. Whoever names
 * a command, or neither a template nor a session, must be allowed commands of one's own; that is decided before
 * anything else about the query, so that no spelling of it gets around.
 */
async function readCommand(
  query: URLSearchParams,
  call: SandboxCall,
  { commands, sessionNames }: AttachDependencies,
): Promise<{ readonly query: URLSearchParams; readonly filled?: FilledTemplate }> {
  const namesCommand = query.has('cmd') || query.has('arg')
  if (namesCommand || !(query.has('template') || query.has('session')))
    commands.checkFree(call, query.get('cmd') ?? undefined)
  const expanded = expandTemplate(query, commands)
  if (expanded !== undefined) return expanded
  const [session, ...more] = query.getAll('session')
  if (session === undefined || more.length > 0) return { query }
  const named = new URLSearchParams(query)
  named.set('session', await sessionNames.resolve(session, call.identity))
  return { query: named }
}

/** Joins a session; not yours and not there look the same. */
export async function joinIn(
  target: Extract<AttachQuery['target'], { kind: 'join' }>,
  call: AttachCall,
  ticket: TicketBinding | undefined,
  deps: AttachDependencies,
): Promise<Response> {
  try {
    const place = await placeOfSession(call.identity, target, deps)
    checkTicket(ticket, { sandbox: place, session: target.session })
    return await connect(place, { ...call, joins: target.session }, deps)
  } catch (error) {
    throw isMissing(error) ? noSuchSession() : error
  }
}

/** Serves an attach of a caller whose credential was checked; returns the sandbox's 101 or throws. */
export async function attach(
  request: Request,
  query: URLSearchParams,
  { call, ticket }: { readonly call: SandboxCall; readonly ticket: TicketBinding | undefined },
  deps: AttachDependencies,
): Promise<Response> {
  const { dialect, isUpgrade, isWellFormed } = readUpgrade(request)
  if (isUpgrade && !isWellFormed)
    throw new SandwireError('bad_request', 'Cannot upgrade: the WebSocket handshake is malformed')
  if (isUpgrade) checkSubprotocols(request.headers.get('sec-websocket-protocol'))
  if (isUpgrade) await deps.limits.admit(call)
  // A request that is no upgrade has not chosen a dialect: clients ask that way what was wrong with their upgrade.
  const { query: asked, filled } = await readCommand(query, call, deps)
  const { target, isIdempotent, ...parsed } = parseAttachQuery(asked, isUpgrade ? dialect : 'v1')
  if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
  const attachCall: AttachCall = {
    ...call,
    dialect,
    isIdempotent,
    query: parsed.query,
    ...(ticket === undefined ? {} : { maxRole: ticket.role }),
    ...(filled === undefined
      ? {}
      : {
          template: filled.template,
          env: filled.env,
        }),
  }
  if (target.kind === 'start') return startIn(target, attachCall, ticket, deps)
  return joinIn(target, attachCall, ticket, deps)
}
