import { type Role, SandwireError } from '@sandwire/protocol'
import { COMPAT_ROUTES } from '../compat/routes.ts'
import { VERSION_ROUTES } from '../versions/version-routes.ts'
import { WORKSPACE_ROUTES } from '../workspace/routes/routes.ts'
import { AGENT_ROUTES } from '../agents/agent-routes.ts'
import { type Caller, type CallerAuthority, roleOf } from '../caller.ts'

type Row = readonly Exclude<CallerAuthority, 'bearer'>[]

const CONTROL: Row = ['control']
const DRIVER: Row = ['driver']
const CONTROL_OR_DRIVER: Row = ['control', 'driver']
const ANY_ROLE: Row = ['driver', 'collaborator', 'viewer']
const ANY: Row = ['control', 'driver', 'collaborator', 'viewer']

/** Drivers only: control reads no files. Changing files also needs `exec`. */
const WORKSPACE_AUTHORITIES: Readonly<Record<string, Row>> = Object.fromEntries(
  Object.entries({ ...WORKSPACE_ROUTES, ...COMPAT_ROUTES }).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [`${method} ${path}`, DRIVER]),
  ),
)

/** Control saves and restores all files of the sandbox, without looking into them. */
const VERSION_AUTHORITIES: Readonly<Record<string, Row>> = Object.fromEntries(
  Object.entries(VERSION_ROUTES).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [`${method} ${path}`, CONTROL]),
  ),
)

/** Control runs agents, and reads what they report. */
const AGENT_AUTHORITIES: Readonly<Record<string, Row>> = Object.fromEntries(
  Object.entries(AGENT_ROUTES).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [`${method} ${path}`, CONTROL]),
  ),
)

/** Authorities that may use each route. A caller with the secret may use every route; a route without a row is closed to all others. */
export const ROUTE_AUTHORITIES: Readonly<Record<string, Row>> = {
  /** Control never attaches, so it never sees a session's bytes. */
  'GET /attach': ANY_ROLE,
  'GET /envelopes/pty': ANY_ROLE,
  'GET /envelopes/text': ANY_ROLE,
  'GET /__meta/version': CONTROL,
  'GET /activity': CONTROL,
  'GET /metrics': CONTROL,
  /** The list has the sessions of all accounts; control filters it for its users. */
  'GET /sessions': CONTROL,
  /** Also needs `exec` or `starts`. */
  'POST /sessions': DRIVER,
  'GET /sessions/:id': ANY,
  'DELETE /sessions/:id': CONTROL_OR_DRIVER,
  'POST /sessions/:id/signal': CONTROL_OR_DRIVER,
  'GET /sessions/:id/output': ANY_ROLE,
  'POST /attachments/close': CONTROL,
  'PUT /stop-reason': CONTROL,
  ...WORKSPACE_AUTHORITIES,
  ...VERSION_AUTHORITIES,
  ...AGENT_AUTHORITIES,
  /** Control passes the connections of viewers through. */
  'GET /agents/:id/events': ANY,
  'GET /agents/:id/claude-stream': ANY_ROLE,
}

/** Throws `forbidden` unless the caller may use the route, such as `GET /sessions`. */
export function checkRoute({ authority }: Caller, route: string): void {
  if (authority === 'bearer') return
  const row = Object.hasOwn(ROUTE_AUTHORITIES, route) ? ROUTE_AUTHORITIES[route] : undefined
  if (row?.includes(authority) === true) return
  throw new SandwireError('forbidden', `Cannot use this route as ${authority}`)
}

/** Throws `forbidden` unless the caller may change files, which decides what runs later. */
export function checkChange({ exec }: Caller): void {
  if (!exec) throw new SandwireError('forbidden', 'Cannot change files: this connection may not run commands')
}

/** Throws `forbidden` unless the caller may start processes. */
export function checkStart({ authority, exec, starts }: Caller): void {
  if ((exec || starts === true) && (authority === 'bearer' || authority === 'driver')) return
  throw new SandwireError('forbidden', 'Cannot start a process: this connection may not run commands')
}

/** Roles that each role includes. */
const INCLUDED: Readonly<Record<Role, readonly Role[]>> = {
  driver: ['driver', 'collaborator', 'viewer'],
  collaborator: ['collaborator', 'viewer'],
  viewer: ['viewer'],
}

/** The highest role of a connection: the caller's, or the lower one that the URL requests. */
export function narrowRole(caller: Caller, requested: Role | undefined, isTemplate = false): Role {
  const own = roleOf(caller, isTemplate)
  if (own === undefined) throw new SandwireError('forbidden', `Cannot attach as ${caller.authority}`)
  if (requested === undefined || INCLUDED[own].includes(requested)) return requested ?? own
  throw new SandwireError('forbidden', `Cannot become ${requested}: this connection may be ${own}`)
}
