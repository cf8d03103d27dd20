import { PROXY_ROUTES, nameOfRoute } from '../workspace-proxy/routes.ts'

/** Everything that can be in an audit row's `action`. Names are stable: people filter by them. */
export const ACTIONS = [
  'sandbox.create',
  'sandbox.start',
  'sandbox.stop',
  'sandbox.destroy',
  'sandbox.env',
  'session.start',
  'session.join',
  'session.end',
  'session.pin',
  'session.unpin',
  'exec',
  'output.read',
  'logs.read',
  'grant.create',
  'grant.redeem',
  'grant.revoke',
  'grant.leave',
  'ticket.create',
  /** A file or folder was written or made; also parts of uploads. */
  'file.write',
  'file.delete',
  'file.move',
  /** Staged, unstaged or discarded. */
  'git.change',
  'git.commit',
  'signin',
  'signout',
  'account.delete',
  /** An operator deleted somebody else's. */
  'account.remove',
  /** An attach that was refused before it was known what it asks for. */
  'attach',
  /** Rows were left out because there were too many; `dropped` says how many. */
  'audit.dropped',
] as const
export type Action = (typeof ACTIONS)[number]

/** Changes in workspaces, by the gateway's own table. */
const OF_WORKSPACES: Readonly<Record<string, Action>> = Object.fromEntries(
  PROXY_ROUTES.flatMap((route) => (route.action === undefined ? [] : [[nameOfRoute(route), route.action]])),
)

/**
 * What a request to a route is called in the audit. Everything that changes something has a name, and so has reading what
 * runs in a sandbox. An attach is named by what it turns out to ask for.
 */
export const ROUTE_ACTIONS: Readonly<Record<string, Action>> = {
  'POST /api/signin': 'signin',
  'POST /api/signout': 'signout',
  'GET /signin/callback': 'signin',
  'DELETE /api/account': 'account.delete',
  'DELETE /api/accounts/:account': 'account.remove',
  'DELETE /api/account/sign-ins/:login': 'signout',
  'POST /api/grants': 'grant.create',
  'DELETE /api/grants/:grant': 'grant.revoke',
  'DELETE /api/account/grants/:grant': 'grant.leave',
  'POST /api/grants/redeem': 'grant.redeem',
  'POST /api/tickets': 'ticket.create',
  'POST /api/sandboxes': 'sandbox.create',
  'DELETE /api/sandboxes/:sandbox': 'sandbox.destroy',
  'POST /api/sandboxes/:sandbox/start': 'sandbox.start',
  'POST /api/sandboxes/:sandbox/stop': 'sandbox.stop',
  'PUT /api/sandboxes/:sandbox/env': 'sandbox.env',
  'POST /api/sandboxes/:sandbox/exec': 'exec',
  'POST /api/sandboxes/:sandbox/sessions': 'session.start',
  'GET /api/sandboxes/:sandbox/sessions/:session/output': 'output.read',
  'DELETE /api/account/sessions/:session': 'session.end',
  'PUT /api/account/sessions/:session/pin': 'session.pin',
  'DELETE /api/account/sessions/:session/pin': 'session.unpin',
  'GET /logs/:sandbox': 'logs.read',
  ...OF_WORKSPACES,
  'GET /attach': 'attach',
  'GET /terminal/:session': 'attach',
  'GET /ws/pty': 'attach',
}

/** What the audit calls a request to a route; undefined: it is not written down. */
export function actionOf(method: string, path: string): Action | undefined {
  const route = `${method.toUpperCase()} ${path}`
  return Object.hasOwn(ROUTE_ACTIONS, route) ? ROUTE_ACTIONS[route] : undefined
}
