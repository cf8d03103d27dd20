import { SandwireError } from '@sandwire/protocol'
import { WORKSPACE_ROUTES } from '../workspace/routes/index.ts'
import type { Caller, CallerAuthority } from '../caller.ts'

type Row = readonly Exclude<CallerAuthority, 'bearer'>[]

const CONTROL: Row = ['control']
const DRIVER: Row = ['driver']
const CONTROL_OR_DRIVER: Row = ['control', 'driver']
const PEOPLE: Row = ['driver', 'collaborator', 'viewer']
const ANYONE: Row = ['control', 'driver', 'collaborator', 'viewer']

/** Files are for whoever may drive; control sees none of them. What changes them needs `exec` as well. */
const WORKSPACE_RIGHTS: Readonly<Record<string, Row>> = Object.fromEntries(
  Object.entries(WORKSPACE_ROUTES).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [`${method} ${path}`, DRIVER]),
  ),
)

/** Who may use which route, one row each. Whoever has the secret may use all; a route without a row is for nobody else. */
export const ROUTE_RIGHTS: Readonly<Record<string, Row>> = {
  /** Control never attaches: it sees no bytes. */
  'GET /attach': PEOPLE,
  'GET /envelopes/pty': PEOPLE,
  'GET /__meta/version': CONTROL,
  'GET /activity': CONTROL,
  'GET /metrics': CONTROL,
  /** The list names everybody's sessions; what a person may see of it, control knows. */
  'GET /sessions': CONTROL,
  /** Needs `exec` or `starts` as well. */
  'POST /sessions': DRIVER,
  'GET /sessions/:id': ANYONE,
  'DELETE /sessions/:id': CONTROL_OR_DRIVER,
  'POST /sessions/:id/signal': CONTROL_OR_DRIVER,
  'GET /sessions/:id/output': PEOPLE,
  'POST /attachments/close': CONTROL,
  'PUT /stop-reason': CONTROL,
  ...WORKSPACE_RIGHTS,
}

/** Throws `forbidden` unless the caller may use the route, named as in the table. */
export function checkRoute({ authority }: Caller, route: string): void {
  if (authority === 'bearer') return
  const row = Object.hasOwn(ROUTE_RIGHTS, route) ? ROUTE_RIGHTS[route] : undefined
  if (row?.includes(authority) === true) return
  throw new SandwireError('forbidden', `Cannot use this route as ${authority}`)
}

/** Throws `forbidden` unless the caller may change files: whoever can do that decides what runs later. */
export function checkChange({ exec }: Caller): void {
  if (!exec) throw new SandwireError('forbidden', 'Cannot change files: this connection may not run commands')
}

/** Throws `forbidden` unless the caller may start processes. */
export function checkStart({ authority, exec, starts }: Caller): void {
  if ((exec || starts === true) && (authority === 'bearer' || authority === 'driver')) return
  throw new SandwireError('forbidden', 'Cannot start a process: this connection may not run commands')
}
