import { COMPATIBLE_FROM, PROTOCOL_VERSION, SandwireError } from '@sandwire/protocol'
import { renderMetrics } from './metrics.ts'
import { respondJson } from './respond.ts'
import {
  createSession,
  endSession,
  listSessions,
  readOutput,
  type SessionRouteDependencies,
  showSession,
  signalSession,
} from './session-routes.ts'
import { viewSession } from './session-view.ts'

export interface ApiDependencies extends SessionRouteDependencies {
  readonly version: string
  /** How often each error was answered. */
  readonly refusals: ReadonlyMap<string, number>
}

/** What a route is given. */
interface Call {
  readonly request: Request
  readonly url: URL
  readonly principal: string
  /** The session id in the path, or empty. */
  readonly id: string
}

type Route = (call: Call, deps: ApiDependencies) => Response | Promise<Response>

/** Every HTTP route behind the credential, by method; `:id` is any one segment. */
const ROUTES: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  '/__meta/version': { GET: (_, deps) => showVersion(deps) },
  '/activity': { GET: (_, deps) => showActivity(deps) },
  '/metrics': { GET: (_, deps) => showMetrics(deps) },
  '/sessions': {
    GET: (_, deps) => listSessions(deps),
    POST: ({ request, principal }, deps) => createSession(request, principal, deps),
  },
  '/sessions/:id': {
    GET: ({ id }, deps) => showSession(id, deps),
    DELETE: ({ id }, deps) => endSession(id, deps),
  },
  '/sessions/:id/signal': { POST: ({ request, id }, deps) => signalSession(request, id, deps) },
  '/sessions/:id/output': { GET: ({ url, id }, deps) => readOutput(id, url.searchParams, deps) },
}

/** Serves the HTTP routes to a caller that has been authenticated. */
export class Api {
  readonly #deps: ApiDependencies

  constructor(deps: ApiDependencies) {
    this.#deps = deps
  }

  async handle(request: Request, url: URL, principal: string): Promise<Response> {
    const { methods, id } = find(url.pathname)
    if (methods === undefined) throw new SandwireError('not_found', 'No such route')
    const route = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined
    if (route === undefined) throw new SandwireError('method_not_allowed', 'Cannot use this method here')
    return route({ request, url, principal, id }, this.#deps)
  }
}

function find(pathname: string): { methods: Readonly<Record<string, Route>> | undefined; id: string } {
  if (Object.hasOwn(ROUTES, pathname) && !pathname.includes(':')) return { methods: ROUTES[pathname], id: '' }
  const [, folder, id, ...rest] = pathname.split('/')
  const pattern = [`/${folder ?? ''}/:id`, ...rest].join('/')
  if (id === undefined || id === '' || !Object.hasOwn(ROUTES, pattern)) return { methods: undefined, id: '' }
  return { methods: ROUTES[pattern], id }
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

function showActivity({ registry, epochMs }: ApiDependencies): Response {
  const sessions = [...registry.all()].map((host) => viewSession(host, epochMs))
  return respondJson({
    attachments: sessions.reduce((sum, session) => sum + session.attachments, 0),
    lastInputMs: latest(sessions.map((session) => session.lastInputMs)),
    lastOutputMs: latest(sessions.map((session) => session.lastOutputMs)),
    sessions,
    exits: registry.exits,
  })
}

function latest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.max(...known)
}
