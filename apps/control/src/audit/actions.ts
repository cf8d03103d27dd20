import { PROXY_ROUTES, nameOfRoute } from '../workspace-proxy/routes.ts'

/** Values of `action` in an audit row. They are stable, because users filter by them. */
export const ACTIONS = [
  'sandbox.create',
  'sandbox.start',
  'sandbox.stop',
  'sandbox.destroy',
  'sandbox.env',
  'version.create',
  'version.delete',
  'version.restore',
  'version.fork',
  'version.rebuild',
  /** Which versions are kept. */
  'retention.set',
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
  /** A file or folder was written or created, or a chunk of an upload. */
  'file.write',
  'file.delete',
  'file.move',
  /** Staged, unstaged or discarded. */
  'git.change',
  'tmux.change',
  'git.commit',
  'run.create',
  /** A message, an approval or an interrupt. */
  'run.steer',
  'run.abort',
  'run.delete',
  'run.publish',
  'conversation.create',
  /** A browser connected to a conversation. */
  'conversation.open',
  /** A message, an answer or an interrupt. */
  'conversation.steer',
  /** Messages that the operator's API had refused are sent again. */
  'conversation.replay',
  'conversation.publish',
  'conversation.delete',
  'signin',
  'signout',
  'account.delete',
  /** An operator deleted another account. */
  'account.remove',
  /** An attach that was refused before its target was known. */
  'attach',
  /** Rows are missing, because there were too many or they could not be stored; `dropped` is their number. */
  'audit.dropped',
] as const
export type Action = (typeof ACTIONS)[number]

/** What a row is about. Rows of a class are evicted only by rows of the same class. */
export type AuditClass = (typeof AUDIT_CLASSES)[number]
export const AUDIT_CLASSES = ['security', 'activity', 'gap'] as const

/** Who has access, and what cannot be undone. */
const SECURITY: ReadonlySet<Action> = new Set([
  'retention.set',
  'signin',
  'signout',
  'account.delete',
  'account.remove',
  'grant.create',
  'grant.redeem',
  'grant.revoke',
  'grant.leave',
  'ticket.create',
  'sandbox.create',
  'sandbox.destroy',
  'sandbox.env',
  'version.delete',
  'version.restore',
  'version.fork',
  'run.delete',
  'run.publish',
  'conversation.publish',
  'conversation.delete',
])

/** The class of a row; what a ceiling refused is relevant to security, whatever the action. */
export function classOf(action: Action, code?: string): AuditClass {
  if (action === 'audit.dropped') return 'gap'
  return SECURITY.has(action) || code === 'ceiling_exceeded' ? 'security' : 'activity'
}

/** Actions of the proxied file routes. */
const WORKSPACE_ACTIONS: Readonly<Record<string, Action>> = Object.fromEntries(
  PROXY_ROUTES.flatMap((route) => (route.action === undefined ? [] : [[nameOfRoute(route), route.action]])),
)

/**
 * The audit action of each route. Every route that changes something has one, and so have reads of output and logs. An attach is
 * recorded as the action that it turns out to be.
 */
export const ROUTE_ACTIONS: Readonly<Record<string, Action>> = {
  'POST /api/signin': 'signin',
  'POST /api/signout': 'signout',
  'GET /signin/callback': 'signin',
  'GET /signin/callback/:issuer': 'signin',
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
  'POST /api/sandboxes/:sandbox/checkpoints': 'version.create',
  'DELETE /api/sandboxes/:sandbox/checkpoints/:version': 'version.delete',
  'POST /api/sandboxes/:sandbox/checkpoints/:version/restore': 'version.restore',
  'POST /api/sandboxes/:sandbox/checkpoints/:version/fork': 'version.fork',
  'POST /api/sandboxes/:sandbox/checkpoints/rebuild': 'version.rebuild',
  'PUT /api/sandboxes/:sandbox/retention': 'retention.set',
  'PUT /api/account/retention': 'retention.set',
  'PUT /api/sandboxes/:sandbox/env': 'sandbox.env',
  'POST /api/sandboxes/:sandbox/exec': 'exec',
  'POST /api/sandboxes/:sandbox/sessions': 'session.start',
  'GET /api/sandboxes/:sandbox/sessions/:session/output': 'output.read',
  'DELETE /api/account/sessions/:session': 'session.end',
  'PUT /api/account/sessions/:session/pin': 'session.pin',
  'DELETE /api/account/sessions/:session/pin': 'session.unpin',
  'GET /logs/:sandbox': 'logs.read',
  'POST /api/runs': 'run.create',
  'POST /api/runs/:run/messages': 'run.steer',
  'POST /api/runs/:run/approvals/:request': 'run.steer',
  'POST /api/runs/:run/interrupt': 'run.steer',
  'POST /api/runs/:run/abort': 'run.abort',
  'POST /api/runs/:run/publish': 'run.publish',
  'POST /api/runs/:run/restore': 'version.restore',
  'DELETE /api/runs/:run': 'run.delete',
  'POST /api/conversations': 'conversation.create',
  'POST /api/conversations/:conversation/messages': 'conversation.steer',
  'POST /api/conversations/:conversation/restore': 'version.restore',
  'POST /api/conversations/:conversation/publish': 'conversation.publish',
  'POST /api/conversations/:conversation/dead-letters/replay': 'conversation.replay',
  'DELETE /api/conversations/:conversation': 'conversation.delete',
  ...WORKSPACE_ACTIONS,
  'GET /attach': 'attach',
  'GET /terminal/:session': 'attach',
  'GET /ws/pty': 'attach',
  'GET /ws/claude-stream': 'attach',
  'GET /ws/v2': 'conversation.open',
}

/** The audit action of a route; undefined: not audited. */
export function actionOf(method: string, path: string): Action | undefined {
  const route = `${method.toUpperCase()} ${path}`
  return Object.hasOwn(ROUTE_ACTIONS, route) ? ROUTE_ACTIONS[route] : undefined
}
