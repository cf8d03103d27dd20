import { SandwireError } from '@sandwire/protocol'
import { mintSecret, sha256Hex } from '../bytes.ts'
import type { SourceSettings } from '../http/source-check.ts'
import { unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { placeOf, unwrapPlace } from './place.ts'
import { ticketBody, ticketMade } from './sharing-schemas.ts'

export interface TicketRouteDependencies {
  readonly directory: Directory
  readonly sessionNames: SessionNames
  readonly source: SourceSettings
}

/**
 * The origin that a ticket is good for; null: no page at all. A page is believed about its own and no other; a program may say whose
 * page it asks for, among those that can use one.
 */
function originOfTicket(
  sent: string | null,
  named: string | undefined,
  { publicOrigins, embedOrigins }: SourceSettings,
): string | null {
  if (named === undefined || named === sent) return sent
  if (sent !== null)
    throw new SandwireError('origin_refused', 'Cannot use "origin": a page gets tickets for its own origin')
  if (!publicOrigins.includes(named) && !embedOrigins.includes(named))
    throw new SandwireError(
      'origin_refused',
      'Cannot use "origin": it is neither this server’s nor one that its operator lists (SANDWIRE_EMBED_ORIGINS)',
    )
  return named
}

/** `/api/tickets`: what a page opens its socket with, since it can set no header there. */
export function addTicketRoutes(
  app: App,
  guardOf: GuardOf,
  { directory, sessionNames, source }: TicketRouteDependencies,
): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/tickets',
      request: { body: body(ticketBody) },
      responses: { 201: json(ticketMade, 'Good for one upgrade, from the origin that it was asked for') },
    }),
    async (context) => {
      const call = callOf(context)
      const wish = context.req.valid('json')
      const { role } = wish
      const origin = originOfTicket(context.req.raw.headers.get('origin'), wish.origin, source)
      const session =
        wish.session === undefined ? undefined : await sessionNames.resolve(wish.session, call.identity)
      const sandbox = await placeOf(directory, call.identity, { sandbox: wish.sandbox, session })
      const ticket = `${sandbox}.${mintSecret()}`
      const request = {
        hash: await sha256Hex(ticket),
        origin,
        ...(session === undefined ? {} : { session }),
        ...(role === undefined ? {} : { role }),
      }
      const outcome = await directory.sandbox(sandbox).issueTicket(call, request)
      const expiresMs = session === undefined ? unwrap(outcome) : unwrapPlace(outcome)
      return context.json({ ticket, expiresMs }, 201)
    },
  )
}
