/** Who may use a route. */
export type Policy =
  /** Anybody from a listed host and origin. */
  | 'public'
  /** A signed-in identity; a browser's cookie counts when the request comes from our own page. */
  | 'read'
  /** The same, but it changes something: a cookie counts only with an exact Origin. */
  | 'write'
  /** A bearer only: a cookie would let any page that gets past the origin check attach. */
  | 'bearer'

/** Every route, by method and path. A route that is not here cannot be registered. */
export const POLICIES = {
  'GET /health': 'public',
  'GET /healthz': 'public',
  'GET /readyz': 'public',
  'GET /metrics': 'bearer',
  'GET /': 'public',
  'GET /front.js': 'public',
  'GET /signin': 'public',
  'GET /signin.js': 'public',
  'GET /page.css': 'public',
  'POST /api/signin': 'public',
  'POST /api/signout': 'write',
  'GET /api/openapi.json': 'read',
  'GET /api/sandboxes': 'read',
  'POST /api/sandboxes': 'write',
  'GET /api/sandboxes/:sandbox': 'read',
  'DELETE /api/sandboxes/:sandbox': 'write',
  'POST /api/sandboxes/:sandbox/start': 'write',
  'POST /api/sandboxes/:sandbox/stop': 'write',
  'PUT /api/sandboxes/:sandbox/env': 'write',
  'POST /api/sandboxes/:sandbox/exec': 'write',
  'POST /api/sandboxes/:sandbox/sessions': 'write',
  'GET /api/sandboxes/:sandbox/sessions/:session/output': 'read',
  'GET /api/account/sessions': 'read',
  'GET /api/account/sessions/:session': 'read',
  'DELETE /api/account/sessions/:session': 'write',
  'PUT /api/account/sessions/:session/pin': 'write',
  'DELETE /api/account/sessions/:session/pin': 'write',
  'GET /logs/:sandbox': 'read',
  'GET /attach': 'bearer',
  'GET /terminal/:session': 'bearer',
} as const satisfies Record<string, Policy>

/** The policy of a route; throws for one without, so that none can be forgotten. */
export function policyOf(method: string, path: string): Policy {
  const entry = Object.entries(POLICIES).find(([route]) => route === `${method.toUpperCase()} ${path}`)
  if (entry === undefined) throw new Error(`The route ${method} ${path} has no policy`)
  return entry[1]
}
