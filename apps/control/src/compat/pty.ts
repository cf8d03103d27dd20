import { z } from '@hono/zod-openapi'
import { COMPAT_SUBPROTOCOL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { TicketBinding } from '../auth/identity.ts'
import { checkHandshake, offeredSubprotocols } from '../http/upgrade.ts'
import type { AttachDependencies } from '../routes/attach.ts'
import { type App, callOf, identityOf } from '../routes/context.ts'
import { endpoint, type GuardOf } from '../routes/endpoint.ts'
import type { AttachCall, SandboxCall } from '../sandbox/call.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import type { Selection } from './compat-sessions.ts'
import { openSession, selectionOf, toAttachCall } from './open-session.ts'
import { fillProvider, findStartRefusal } from './pty-providers.ts'
import { parsePtyQuery, type PtyQuery } from './pty-query.ts'

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

function callOfTerminal(
  query: PtyQuery,
  call: SandboxCall,
  ticket: TicketBinding | undefined,
  { commands, sessionSettings }: AttachDependencies,
): AttachCall & { readonly compat: Selection } {
  const filled = fillProvider(query.provider, commands)
  const refusal = findStartRefusal(filled, call, commands)
  const compat = { kind: 'pty', ...selectionOf(query, sessionSettings, refusal) } as const
  return {
    ...toAttachCall(call, compat, filled, ticket, sessionSettings),
    ...(filled === undefined ? {} : { template: filled.template, env: filled.env }),
  }
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
      const call = callOfTerminal(query, caller, ticket, deps)
      if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
      try {
        const opened = await openSession(query, ['pipe', 'pty'], call, ticket, deps)
        if (offers.length > 0) opened.headers.set('sec-websocket-protocol', COMPAT_SUBPROTOCOL)
        return opened
      } catch (caught) {
        throw joins ? toMissingSession(caught) : caught
      }
    },
  )
}
