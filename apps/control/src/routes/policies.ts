import type { Scope } from '../auth/identity.ts'
import { PROXY_ROUTES, nameOfRoute } from '../workspace-proxy/routes.ts'
import type { Need } from '../sandbox/access.ts'

/** How a caller has to show who it is. */
export type Credential =
  /** A bearer; a browser's cookie counts when the request comes from our own page. */
  | 'read'
  /** The same, but it changes something: a cookie counts only with an exact Origin. */
  | 'write'
  /** The same; on one machine, without issuers, also nobody: the secret of a link says that they were invited. */
  | 'invited'
  /** A bearer or a ticket: a cookie would let any page that gets past the origin check attach. */
  | 'socket'
  /** The same; a cookie counts with an exact Origin: existing front ends open their sockets with nothing else. */
  | 'page socket'

/** Who may use a route. */
export type Policy =
  /** Anybody from a listed host and origin. */
  | 'public'
  | {
      readonly credential: Credential
      /** What the credential must be good for. */
      readonly scope: Scope
      /** What the caller must be allowed in the sandbox that it names; `self`: it names none, it is about the caller. */
      readonly need: Need | 'self'
    }

function rule<S extends Scope, N extends Need | 'self'>(credential: Credential, scope: S, need: N) {
  return { credential, scope, need } as const
}

/** Whoever may not work in a sandbox sees its terminals, and none of its files. */
const OF_WORKSPACES: Readonly<Record<string, Policy>> = Object.fromEntries(
  PROXY_ROUTES.map((route) => [
    nameOfRoute(route),
    rule(route.method === 'GET' ? 'read' : 'write', route.access === 'read' ? 'connect' : 'exec', 'work'),
  ]),
)

/** Every route, by method and path. A route that is not here cannot be registered. */
export const POLICIES: Readonly<Record<string, Policy>> = {
  'GET /health': 'public',
  'GET /healthz': 'public',
  'GET /readyz': 'public',
  'GET /metrics': rule('socket', 'operator', 'self'),
  'GET /': 'public',
  'GET /assets/:file': 'public',
  'GET /signin': 'public',
  'GET /signin.js': 'public',
  'GET /signin/start': 'public',
  'GET /signin/callback': 'public',
  'GET /join': 'public',
  'GET /join.js': 'public',
  'GET /page.css': 'public',
  'POST /api/signin': 'public',
  'POST /api/signout': rule('write', 'connect', 'self'),
  'GET /api/auth': 'public',
  'GET /api/whoami': rule('read', 'connect', 'self'),
  'GET /api/openapi.json': rule('read', 'connect', 'self'),
  'GET /api/sandboxes': rule('read', 'connect', 'self'),
  'POST /api/sandboxes': rule('write', 'admin', 'self'),
  'GET /api/sandboxes/:sandbox': rule('read', 'connect', 'see'),
  'DELETE /api/sandboxes/:sandbox': rule('write', 'admin', 'own'),
  'POST /api/sandboxes/:sandbox/start': rule('write', 'exec', 'work'),
  'POST /api/sandboxes/:sandbox/stop': rule('write', 'admin', 'own'),
  'PUT /api/sandboxes/:sandbox/env': rule('write', 'admin', 'own'),
  'POST /api/sandboxes/:sandbox/exec': rule('write', 'exec', 'work'),
  // With a template `connect` is enough; a command of one's own needs `exec`, which the route checks.
  'POST /api/sandboxes/:sandbox/sessions': rule('write', 'connect', 'work'),
  'GET /api/sandboxes/:sandbox/sessions/:session/output': rule('read', 'connect', 'watch'),
  'DELETE /api/account': rule('write', 'admin', 'self'),
  'DELETE /api/accounts/:account': rule('write', 'operator', 'self'),
  'GET /api/account/sign-ins': rule('read', 'connect', 'self'),
  'DELETE /api/account/sign-ins/:login': rule('write', 'admin', 'self'),
  'GET /api/account/sessions': rule('read', 'connect', 'self'),
  'GET /api/account/sessions/:session': rule('read', 'connect', 'watch'),
  'DELETE /api/account/sessions/:session': rule('write', 'exec', 'work'),
  'PUT /api/account/sessions/:session/pin': rule('write', 'exec', 'work'),
  'DELETE /api/account/sessions/:session/pin': rule('write', 'exec', 'work'),
  'GET /api/audit': rule('read', 'admin', 'self'),
  'GET /api/account/grants': rule('read', 'connect', 'self'),
  // Of who holds it; for everybody else there is none.
  'DELETE /api/account/grants/:grant': rule('write', 'connect', 'self'),
  'POST /api/grants': rule('write', 'admin', 'own'),
  'GET /api/grants': rule('read', 'admin', 'own'),
  'DELETE /api/grants/:grant': rule('write', 'admin', 'own'),
  'POST /api/grants/redeem': rule('invited', 'connect', 'self'),
  // To join, `watch`; to start, `work`.
  'POST /api/tickets': rule('write', 'connect', 'watch'),
  'GET /api/templates': rule('read', 'connect', 'self'),
  'GET /logs/:sandbox': rule('read', 'connect', 'work'),
  ...OF_WORKSPACES,
  'GET /api/sessions': rule('read', 'connect', 'see'),
  // Makes up an id and nothing else.
  'POST /api/sessions': rule('read', 'connect', 'self'),
  'GET /api/capabilities': rule('read', 'connect', 'self'),
  'GET /api/config': rule('read', 'connect', 'self'),
  'GET /api/project': rule('read', 'connect', 'self'),
  // Joining needs `watch`, starting `work`, and a command of one's own `exec`.
  'GET /attach': rule('socket', 'connect', 'watch'),
  'GET /terminal/:session': rule('socket', 'connect', 'watch'),
  'GET /ws/pty': rule('page socket', 'connect', 'watch'),
}

/** The policy of a route; throws for one without, so that none can be forgotten. */
export function policyOf(method: string, path: string): Policy {
  const entry = Object.entries(POLICIES).find(([route]) => route === `${method.toUpperCase()} ${path}`)
  if (entry === undefined) throw new Error(`The route ${method} ${path} has no policy`)
  return entry[1]
}
