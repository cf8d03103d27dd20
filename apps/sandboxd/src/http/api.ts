import {
  COMPATIBLE_FROM,
  parseStopReason,
  PROTOCOL_VERSION,
  SandwireError,
  schema,
  type StopReason,
} from '@sandwire/protocol'
import type { Caller } from '../caller.ts'
import { readTotals, readValues, renderMetrics } from './metrics.ts'
import { readJson } from './request-body.ts'
import { respondJson } from './respond.ts'
import { checkChange, checkRoute } from './authorization.ts'
import {
  closeAttachments,
  createSession,
  endSession,
  listSessions,
  readOutput,
  type SessionRouteDependencies,
  showSession,
  signalSession,
} from './session-routes.ts'
import { latest } from '../sessions/session-registry.ts'
import { toWall, viewSession } from './session-view.ts'
import { AGENT_PARAMETERS, AGENT_ROUTES, type AgentHandler } from '../agents/agent-routes.ts'
import type { AgentRegistry } from '../agents/agent-registry.ts'
import { COMPAT_ROUTES } from '../compat/routes.ts'
import { type Workspace, type WorkspaceRoute } from '../workspace/routes/route.ts'
import { VERSION_PARAMETERS, VERSION_ROUTES, type VersionHandler } from '../versions/version-routes.ts'
import type { VersionService } from '../versions/version-service.ts'
import { WORKSPACE_ROUTES } from '../workspace/routes/routes.ts'

export interface ApiDependencies extends SessionRouteDependencies {
  readonly version: string
  /** Number of error responses by code. */
  readonly refusals: ReadonlyMap<string, number>
  readonly workspace: Workspace
  readonly versions: VersionService
  readonly agents: AgentRegistry
  readonly setStopReason: (reason: StopReason) => void
}

/** The input of a route. */
interface Call {
  readonly request: Request
  readonly url: URL
  readonly caller: Caller
  readonly requestId: string
}

interface RoutedCall extends Call {
  /** Value of `:id` in the path; empty where there is none. */
  readonly id: string
}

type Route = (call: RoutedCall, deps: ApiDependencies) => Response | Promise<Response>

interface Row {
  readonly run: Route
  /** Accepted query parameters; any other is refused. */
  readonly parameters: readonly string[] | 'any'
}

const OWN_ROUTES: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  '/__meta/version': { GET: (_, deps) => showVersion(deps) },
  '/activity': { GET: (_, deps) => showActivity(deps) },
  '/metrics': { GET: (_, deps) => showMetrics(deps) },
  '/sessions': {
    GET: (_, deps) => listSessions(deps),
    POST: (call, deps) => createSession(call, deps),
  },
  '/sessions/:id': {
    GET: ({ id }, deps) => showSession(id, deps),
    DELETE: ({ id }, deps) => endSession(id, deps),
  },
  '/sessions/:id/signal': { POST: ({ request, id }, deps) => signalSession(request, id, deps) },
  '/sessions/:id/output': { GET: ({ url, id }, deps) => readOutput(id, url.searchParams, deps) },
  '/attachments/close': { POST: ({ request }, deps) => closeAttachments(request, deps) },
  '/stop-reason': { PUT: ({ request }, deps) => putStopReason(request, deps) },
}

/** Routes that accept query parameters. */
const OWN_PARAMETERS: Readonly<Record<string, readonly string[]>> = { '/sessions/:id/output': ['from'] }

function mapRows<T>(
  routes: Readonly<Record<string, Readonly<Record<string, T>>>>,
  toRow: (route: T, path: string) => Row,
): Record<string, Readonly<Record<string, Row>>> {
  return Object.fromEntries(
    Object.entries(routes).map(([path, methods]) => [
      path,
      Object.fromEntries(Object.entries(methods).map(([method, route]) => [method, toRow(route, path)])),
    ]),
  )
}

function workspaceRow({ access, parameters, handle }: WorkspaceRoute): Row {
  return {
    parameters,
    run: (call, deps) => {
      if (access === 'change') checkChange(call.caller)
      return handle(call, deps)
    },
  }
}

/** Every authenticated HTTP route, by method; `:id` matches one segment. */
const ROUTES: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  ...mapRows(OWN_ROUTES, (run, path) => ({ run, parameters: OWN_PARAMETERS[path] ?? [] })),
  ...mapRows({ ...WORKSPACE_ROUTES, ...COMPAT_ROUTES }, workspaceRow),
  ...mapRows(AGENT_ROUTES, (handle: AgentHandler, path) => ({
    run: (call, deps) => handle(call, deps.agents),
    parameters: AGENT_PARAMETERS[path] ?? [],
  })),
  ...mapRows(VERSION_ROUTES, (handle: VersionHandler, path) => ({
    run: (call, deps) => handle(call, deps.versions),
    parameters: VERSION_PARAMETERS[path] ?? [],
  })),
}

/** Throws `bad_request` for a parameter that the route does not accept. */
function checkQuery({ parameters }: Row, query: URLSearchParams): void {
  if (parameters === 'any') return
  const unknown = [...query.keys()].find((name) => !parameters.includes(name))
  if (unknown === undefined) return
  const shown = unknown.replace(/\p{C}/gu, '').slice(0, 40)
  throw new SandwireError('bad_request', `Cannot use parameter "${shown}": unknown`)
}

/** Methods of a path. */
export function methodsOf(pathname: string): readonly string[] {
  const { pattern } = find(pathname)
  return pattern === undefined ? [] : Object.keys(ROUTES[pattern] ?? {})
}

/** Every route, as `ROUTE_AUTHORITIES` names it. */
export function listRoutes(): readonly string[] {
  return Object.entries(ROUTES).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  )
}

/** Serves the HTTP routes to authenticated callers. */
export class Api {
  readonly #deps: ApiDependencies

  constructor(deps: ApiDependencies) {
    this.#deps = deps
  }

  async handle(call: Call): Promise<Response> {
    const { pattern, id } = find(call.url.pathname)
    const methods = pattern === undefined ? undefined : ROUTES[pattern]
    if (pattern === undefined || methods === undefined) throw new SandwireError('not_found', 'No such route')
    const { method } = call.request
    const route = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (route === undefined)
      throw new SandwireError('method_not_allowed', 'Cannot use this method on this route')
    checkRoute(call.caller, `${method} ${pattern}`)
    checkQuery(route, call.url.searchParams)
    return route.run({ ...call, id }, this.#deps)
  }
}

function find(pathname: string): { pattern: string | undefined; id: string } {
  if (Object.hasOwn(ROUTES, pathname) && !pathname.includes(':')) return { pattern: pathname, id: '' }
  const segments = pathname.split('/')
  for (const [at, id] of segments.entries()) {
    const pattern = segments.with(at, ':id').join('/')
    if (id !== '' && Object.hasOwn(ROUTES, pattern)) return { pattern, id }
  }
  return { pattern: undefined, id: '' }
}

function showVersion({ version }: ApiDependencies): Response {
  return respondJson({
    name: 'sandboxd',
    version,
    protocol: PROTOCOL_VERSION,
    compatible_from: COMPATIBLE_FROM,
  })
}

function showMetrics({ registry, refusals, version }: ApiDependencies): Response {
  const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'cache-control': 'no-store' }
  return new Response(renderMetrics(registry, refusals, version), { headers })
}

function showActivity({ registry, workspace, agents, refusals, epochMs }: ApiDependencies): Response {
  const sessions = [...registry.all()].map((runner) => viewSession(runner, epochMs))
  const { lastInputMs, lastOutputMs } = registry.past
  return respondJson({
    attachments: sessions.reduce((sum, session) => sum + session.attachments, 0),
    lastInputMs: latest([toWall(lastInputMs, epochMs), ...sessions.map((session) => session.lastInputMs)]),
    lastOutputMs: latest([
      toWall(lastOutputMs, epochMs),
      // Panes go on when no session shows them.
      toWall(workspace.tmux.lastOutputMs(), epochMs),
      ...sessions.map((session) => session.lastOutputMs),
    ]),
    sessions,
    /** Runs of agents that have not ended. */
    agents: agents.activeCount,
    exits: registry.exits,
    refused: registry.refusals,
    disconnects: Object.fromEntries(registry.counters.disconnects),
    values: readValues(registry),
    totals: readTotals(registry, refusals),
  })
}

const stopReasonSchema = schema.record({ reason: schema.text(32) })

/** `PUT /stop-reason`: control calls it before it signals a container, where no supervisor writes the file. */
async function putStopReason(request: Request, { setStopReason }: ApiDependencies): Promise<Response> {
  const reason = parseStopReason(stopReasonSchema.decode(await readJson(request))?.reason)
  if (reason === undefined) throw new SandwireError('bad_request', 'Cannot set the stop reason: unknown code')
  setStopReason(reason)
  return respondJson({ reason })
}
