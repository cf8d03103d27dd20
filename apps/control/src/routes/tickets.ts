import { mintSecret, sha256Hex } from '../bytes.ts'
import { unwrap } from '../outcome.ts'
import type { Directory } from '../sandbox/directory.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { placeOf, unwrapPlace } from './place.ts'
import { ticketBody, ticketMade } from './sharing-schemas.ts'

/** `/api/tickets`: what a page opens its socket with, since it can set no header there. */
export function addTicketRoutes(
  app: App,
  guardOf: GuardOf,
  { directory, sessionNames }: { readonly directory: Directory; readonly sessionNames: SessionNames },
): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/tickets',
      request: { body: body(ticketBody) },
      responses: { 201: json(ticketMade, 'Good for one upgrade, from where it was asked for') },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox: named, session: called, role } = context.req.valid('json')
      const session = called === undefined ? undefined : await sessionNames.resolve(called, call.identity)
      const sandbox = await placeOf(directory, call.identity, { sandbox: named, session })
      const ticket = `${sandbox}.${mintSecret()}`
      const request = {
        hash: await sha256Hex(ticket),
        origin: context.req.raw.headers.get('origin'),
        ...(session === undefined ? {} : { session }),
        ...(role === undefined ? {} : { role }),
      }
      const outcome = await directory.sandbox(sandbox).issueTicket(call, request)
      const expiresMs = session === undefined ? unwrap(outcome) : unwrapPlace(outcome)
      return context.json({ ticket, expiresMs }, 201)
    },
  )
}
