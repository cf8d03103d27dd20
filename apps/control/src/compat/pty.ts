import { z } from '@hono/zod-openapi'
import { COMPAT_SUBPROTOCOL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { TicketBinding } from '../auth/identity.ts'
import type { FilledTemplate } from '../commands/command-policy.ts'
import { checkHandshake, offeredSubprotocols } from '../http/upgrade.ts'
import { type AttachDependencies, joinSession, startSession } from '../routes/attach.ts'
import { parseAttachRequest } from '../routes/attach-query.ts'
import { type App, callOf, identityOf } from '../routes/context.ts'
import { endpoint, type GuardOf } from '../routes/endpoint.ts'
import type { SessionSettings } from '../session-settings.ts'
import type { AttachCall, SandboxCall } from '../sandbox/call.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import { fillProvider, findStartRefusal } from './pty-providers.ts'
import { parsePtyQuery, type PtyQuery } from './pty-query.ts'
import type { PtySelection } from './pty-sessions.ts'

/** For the OpenAPI document only; `parsePtyQuery` decodes the query. */
const described = (description: string) => z.unknown().optional().openapi({ type: 'string', description })
const parameters = z.looseObject({
  session_id: described("The session to resume: its id, one of its tokens, or the client's own name for it"),
  provider: described('What to run: shell, or the id of a command template'),
  session_name: described('Display name; ignored'),
  resume: described('1: only an existing session'),
  force_new: described('1: always a new session'),
  sandbox: described('Id or name; default: the default sandbox'),
})

/** Throws `version_unsupported` if the client offers only subprotocols that this route does not speak. */
function checkOffers(offers: readonly string[]): void {
  if (offers.length === 0 || offers.includes(COMPAT_SUBPROTOCOL)) return
  throw new SandwireError(
    'version_unsupported',
    `Unsupported subprotocol: offer "${COMPAT_SUBPROTOCOL}" or none`,
  )
}

/** The attach query that starts a terminal. The client controls nothing in it: the command is a template's or the shell. */
function startQuery(filled: FilledTemplate | undefined, settings: SessionSettings): string {
  const query = new URLSearchParams({
    createId: crypto.randomUUID().replaceAll('-', ''),
    keep: String(settings.ptyReattachSeconds),
  })
  if (filled !== undefined) {
    query.append('cmd', filled.cmd)
    for (const arg of filled.args) query.append('arg', arg)
    if (filled.cwd !== undefined) query.append('cwd', filled.cwd)
  }
  return parseAttachRequest(query, 'v1', settings).query
}

type PtyCall = AttachCall & { readonly compat: PtySelection }

function toAttachCall(
  { provider, select, alias }: PtyQuery,
  call: SandboxCall,
  ticket: TicketBinding | undefined,
  { commands, sessionSettings }: AttachDependencies,
): PtyCall {
  const filled = fillProvider(provider, commands)
  const refusal = findStartRefusal(filled, call, commands)
  return {
    ...call,
    dialect: 'v1',
    isIdempotent: true,
    query: startQuery(filled, sessionSettings),
    ...(ticket === undefined ? {} : { maxRole: ticket.role }),
    ...(filled === undefined ? {} : { template: filled.template, env: filled.env }),
    compat: {
      kind: 'pty',
      select,
      heartbeatSeconds: sessionSettings.ptyHeartbeatSeconds,
      ...(alias === undefined ? {} : { alias }),
      ...(refusal === undefined ? {} : { startRefusal: { code: refusal.code, message: refusal.message } }),
    },
  }
}

/** Opens the requested terminal in the named sandbox or the default one. */
async function openPty(
  query: PtyQuery,
  call: PtyCall,
  ticket: TicketBinding | undefined,
  deps: AttachDependencies,
): Promise<Response> {
  const { session, sandbox, select, alias } = query
  const { startRefusal } = call.compat
  if (session !== undefined) {
    const id = await deps.sessionNames.resolve(session, call.identity)
    const target = { kind: 'join' as const, session: id, ...(sandbox === undefined ? {} : { sandbox }) }
    return joinSession(target, call, ticket, deps)
  }
  if (select === 'resume' && alias === undefined) throw noSuchSession()
  // An alias may name an existing session, which only the sandbox's object knows.
  const isStart = alias === undefined || select === 'new'
  if (isStart && startRefusal !== undefined) throw new SandwireError(startRefusal.code, startRefusal.message)
  return startSession({ kind: 'start', sandbox, mayCreate: select !== 'resume' }, call, ticket, deps)
}

/** For a client that resumes a session, a missing or stopped sandbox means that the session does not exist. */
function toMissingSession(caught: unknown): unknown {
  const { code } = SandwireError.from(caught)
  return code === 'sandbox_not_found' || code === 'sandbox_stopped' ? noSuchSession() : caught
}

/** `/ws/pty`: a terminal over the compat API's JSON messages, which sandboxd translates. */
export function addPtyRoute(app: App, guardOf: GuardOf, deps: AttachDependencies): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/ws/pty',
      request: { query: parameters },
      responses: {
        101: { description: 'A WebSocket with JSON messages of one terminal' },
        426: { description: 'The request is valid but not an upgrade' },
      },
    }),
    async (context) => {
      const request = context.req.raw
      const { isUpgrade } = checkHandshake(request)
      const offers = offeredSubprotocols(request.headers)
      if (isUpgrade) checkOffers(offers)
      const query = parsePtyQuery(new URL(request.url).searchParams)
      const joins = query.session !== undefined || query.select === 'resume'
      context.set('action', joins ? 'session.join' : 'session.start')
      context.set('target', { ...context.get('target'), session: query.session })
      const caller = callOf(context)
      if (isUpgrade) await deps.limits.admit(caller)
      const { ticket } = identityOf(context)
      const call = toAttachCall(query, caller, ticket, deps)
      if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
      try {
        const opened = await openPty(query, call, ticket, deps)
        if (offers.length > 0) opened.headers.set('sec-websocket-protocol', COMPAT_SUBPROTOCOL)
        return opened
      } catch (caught) {
        throw joins ? toMissingSession(caught) : caught
      }
    },
  )
}
