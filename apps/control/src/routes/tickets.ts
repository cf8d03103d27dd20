import { SandwireError } from '@sandwire/protocol'
import { mintSecret, sha256Hex } from '../bytes.ts'
import type { SourceSettings } from '../http/source-check.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { findSandbox, unwrapSession } from './find-sandbox.ts'
import { ticketBody, ticketMade } from './sharing-schemas.ts'

export interface TicketRouteDependencies {
  readonly lookup: SandboxLookup
  readonly sessionNames: SessionNames
  readonly source: SourceSettings
}

/**
 * The origin that a ticket is valid for; null: not for a browser. A page gets tickets for its own origin only; a program may name
 * any origin that is allowed to use tickets.
 */
function originOfTicket(
  requestOrigin: string | null,
  named: string | undefined,
  { publicOrigins, embedOrigins, conversationOrigins }: SourceSettings,
): string | null {
  if (named === undefined || named === requestOrigin) return requestOrigin
  if (requestOrigin !== null)
    throw new SandwireError('origin_refused', 'Cannot use "origin": a page gets tickets for its own origin')
  if (![...publicOrigins, ...embedOrigins, ...conversationOrigins].includes(named))
    throw new SandwireError(
      'origin_refused',
      'Cannot use "origin": neither of this server nor in SANDWIRE_EMBED_ORIGINS',
    )
  return named
}

/** `/api/tickets`: tickets for browsers, which cannot set headers on a WebSocket. */
export function addTicketRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, sessionNames, source }: TicketRouteDependencies,
): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/tickets',
      request: { body: body(ticketBody) },
      responses: { 201: json(ticketMade, 'A ticket for one upgrade from the given origin') },
    }),
    async (context) => {
      const call = callOf(context)
      const { role, ...input } = context.req.valid('json')
      const origin = originOfTicket(context.req.raw.headers.get('origin'), input.origin, source)
      const session =
        input.session === undefined ? undefined : await sessionNames.resolve(input.session, call.identity)
      const sandbox = await findSandbox(lookup, call.identity, { sandbox: input.sandbox, session })
      const ticket = `${sandbox}.${mintSecret()}`
      const request = {
        hash: await sha256Hex(ticket),
        origin,
        ...(session === undefined ? {} : { session }),
        ...(role === undefined ? {} : { role }),
      }
      const outcome = await lookup.sandbox(sandbox).issueTicket(call, request)
      const expiresMs = session === undefined ? unwrap(outcome) : unwrapSession(outcome)
      return context.json({ ticket, expiresMs }, 201)
    },
  )
}
