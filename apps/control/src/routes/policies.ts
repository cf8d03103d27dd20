import type { Scope } from '../auth/identity.ts'
import { PROXY_ROUTES, nameOfRoute } from '../workspace-proxy/routes.ts'
import type { Need } from '../sandbox/access.ts'

/** The credentials that a route accepts. */
export type Credential =
  /** A bearer token, or a cookie if the request comes from our own page. */
  | 'read'
  /** As `read`, for routes that change something: a cookie needs an exact `Origin`. */
  | 'write'
  /** As `write`; on one machine without issuers also no credential, because the share link's secret is one. */
  | 'invited'
  /** A bearer token or a ticket, but no cookie, because its socket can start any command. */
  | 'socket'
  /** As `socket`, or a cookie with an exact `Origin`, because pages that only open a socket have nothing else. */
  | 'page socket'
  /** As `page socket`, or a service's token in a cookie, with an exact `Origin` of this server or of a conversation page. */
  | 'chat socket'

/** Who may use a route. */
export type Policy =
  /** Everyone, at a listed host and from a listed origin. */
  | 'public'
  | {
      readonly credential: Credential
      /** Scope that the credential needs. */
      readonly scope: Scope
      /** Access to the named sandbox that the caller needs; `self`: the route concerns the caller alone. */
      readonly need: Need | 'self'
    }

function rule<S extends Scope, N extends Need | 'self'>(credential: Credential, scope: S, need: N) {
  return { credential, scope, need } as const
}

/** Viewers see terminals of a sandbox, but no files. */
const WORKSPACE_POLICIES: Readonly<Record<string, Policy>> = Object.fromEntries(
  PROXY_ROUTES.map((route) => [
    nameOfRoute(route),
    rule(route.method === 'GET' ? 'read' : 'write', route.access === 'read' ? 'connect' : 'exec', 'work'),
  ]),
)

/** The policy of every route, by method and path. A route without one cannot be registered. */
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
  'GET /signin/callback/:issuer': 'public',
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
  'GET /api/sandboxes/:sandbox/events': rule('read', 'connect', 'see'),
  'PUT /api/sandboxes/:sandbox/env': rule('write', 'admin', 'own'),
  'GET /api/sandboxes/:sandbox/checkpoints': rule('read', 'connect', 'work'),
  'POST /api/sandboxes/:sandbox/checkpoints': rule('write', 'exec', 'work'),
  'DELETE /api/sandboxes/:sandbox/checkpoints/:version': rule('write', 'admin', 'own'),
  'POST /api/sandboxes/:sandbox/checkpoints/:version/restore': rule('write', 'admin', 'own'),
  'PUT /api/sandboxes/:sandbox/retention': rule('write', 'admin', 'own'),
  'GET /api/account/retention': rule('read', 'connect', 'self'),
  'PUT /api/account/retention': rule('write', 'admin', 'self'),
  'POST /api/sandboxes/:sandbox/checkpoints/rebuild': rule('write', 'admin', 'own'),
  'POST /api/sandboxes/:sandbox/checkpoints/:version/fork': rule('write', 'admin', 'own'),
  'GET /api/sandboxes/:sandbox/checkpoints/:version/diff': rule('read', 'connect', 'work'),
  'POST /api/sandboxes/:sandbox/exec': rule('write', 'exec', 'work'),
  // A template needs `connect`; the caller's own command needs `exec`, which the route checks.
  'POST /api/sandboxes/:sandbox/sessions': rule('write', 'connect', 'work'),
  'GET /api/sandboxes/:sandbox/sessions/:session/output': rule('read', 'connect', 'watch'),
  'DELETE /api/account': rule('write', 'admin', 'self'),
  'DELETE /api/accounts/:account': rule('write', 'operator', 'self'),
  'GET /api/account/usage': rule('read', 'connect', 'self'),
  'GET /api/account/sign-ins': rule('read', 'connect', 'self'),
  'DELETE /api/account/sign-ins/:login': rule('write', 'admin', 'self'),
  'GET /api/account/sessions': rule('read', 'connect', 'self'),
  'GET /api/account/sessions/:session': rule('read', 'connect', 'watch'),
  'DELETE /api/account/sessions/:session': rule('write', 'exec', 'work'),
  'PUT /api/account/sessions/:session/pin': rule('write', 'exec', 'work'),
  'DELETE /api/account/sessions/:session/pin': rule('write', 'exec', 'work'),
  'GET /api/audit': rule('read', 'admin', 'self'),
  'GET /api/account/grants': rule('read', 'connect', 'self'),
  // For the holder of the grant only.
  'DELETE /api/account/grants/:grant': rule('write', 'connect', 'self'),
  'POST /api/grants': rule('write', 'admin', 'own'),
  'GET /api/grants': rule('read', 'admin', 'own'),
  'DELETE /api/grants/:grant': rule('write', 'admin', 'own'),
  'POST /api/grants/redeem': rule('invited', 'connect', 'self'),
  // Joining needs `watch`, starting `work`.
  'POST /api/tickets': rule('write', 'connect', 'watch'),
  'GET /api/templates': rule('read', 'connect', 'self'),
  'GET /files/:sandbox': rule('read', 'connect', 'work'),
  'GET /files/:sandbox/:path': rule('read', 'connect', 'work'),
  // Of files in a sandbox, the route also checks `work` on it.
  'GET /api/agents': rule('read', 'connect', 'self'),
  'POST /api/runs': rule('write', 'exec', 'self'),
  'GET /api/runs': rule('read', 'connect', 'self'),
  'GET /api/runs/:run': rule('read', 'connect', 'watch'),
  'GET /api/runs/:run/events': rule('read', 'connect', 'watch'),
  'GET /api/runs/:run/diff': rule('read', 'connect', 'watch'),
  // Viewers watch; the run's object checks that the caller is none.
  'POST /api/runs/:run/messages': rule('write', 'exec', 'watch'),
  'POST /api/runs/:run/approvals/:request': rule('write', 'exec', 'watch'),
  'POST /api/runs/:run/interrupt': rule('write', 'exec', 'watch'),
  'POST /api/runs/:run/abort': rule('write', 'exec', 'watch'),
  // Uses a credential of the operator, which no agent has.
  'POST /api/runs/:run/publish': rule('write', 'exec', 'own'),
  'GET /api/runs/:run/restore-points': rule('read', 'connect', 'watch'),
  // As a restore of the sandbox, whose owner the caller must be.
  'POST /api/runs/:run/restore': rule('write', 'admin', 'own'),
  'DELETE /api/runs/:run': rule('write', 'exec', 'own'),
  // As runs.
  'POST /api/conversations': rule('write', 'exec', 'self'),
  'GET /api/conversations': rule('read', 'connect', 'self'),
  'GET /api/conversations/:conversation': rule('read', 'connect', 'watch'),
  'GET /api/conversations/:conversation/entries': rule('read', 'connect', 'watch'),
  'POST /api/conversations/:conversation/messages': rule('write', 'exec', 'watch'),
  'GET /api/conversations/:conversation/restore-points': rule('read', 'connect', 'watch'),
  'POST /api/conversations/:conversation/restore': rule('write', 'admin', 'own'),
  // The files of the sandbox, with a credential of the operator.
  'GET /api/conversations/:conversation/publish': rule('read', 'exec', 'work'),
  'POST /api/conversations/:conversation/publish': rule('write', 'exec', 'work'),
  'GET /api/conversations/:conversation/dead-letters': rule('read', 'exec', 'own'),
  'POST /api/conversations/:conversation/dead-letters/replay': rule('write', 'exec', 'own'),
  'DELETE /api/conversations/:conversation': rule('write', 'exec', 'own'),
  'GET /logs/:sandbox': rule('read', 'connect', 'work'),
  ...WORKSPACE_POLICIES,
  'GET /api/sessions': rule('read', 'connect', 'see'),
  // Only mints an id.
  'POST /api/sessions': rule('read', 'connect', 'self'),
  'GET /api/capabilities': rule('read', 'connect', 'self'),
  'GET /api/config': rule('read', 'connect', 'self'),
  'GET /api/project': rule('read', 'connect', 'self'),
  // Joining needs `watch`, starting `work`, and the caller's own command `exec`.
  'GET /attach': rule('socket', 'connect', 'watch'),
  'GET /terminal/:session': rule('page socket', 'connect', 'watch'),
  'GET /ws/pty': rule('page socket', 'connect', 'watch'),
  // Starting a session needs `exec`, which the route checks.
  'GET /ws/claude-stream': rule('page socket', 'connect', 'watch'),
  // Beginning a conversation needs `exec`, which the route checks.
  'GET /ws/v2': rule('chat socket', 'connect', 'watch'),
}

/** The policy of a route; throws if it has none. */
export function policyOf(method: string, path: string): Policy {
  const entry = Object.entries(POLICIES).find(([route]) => route === `${method.toUpperCase()} ${path}`)
  if (entry === undefined) throw new Error(`The route ${method} ${path} has no policy`)
  return entry[1]
}
