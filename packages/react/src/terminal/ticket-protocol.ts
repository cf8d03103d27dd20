import type { AttachRequest } from '@sandwire/client'
import { type Role, SandwireError } from '@sandwire/protocol'
import { printable } from './printable.ts'

/** What a ticket is requested for. */
export interface TicketRequest {
  readonly sandbox?: string
  readonly session?: string
  readonly role?: Role
}

export type GetTicket = (request: TicketRequest) => Promise<string>

/** Characters allowed in a subprotocol name; the browser throws for others. */
const TICKET = /^[A-Za-z0-9._-]+$/

/** Errors of the page's own ticket function are passed on and may be retried. */
async function askFor(getTicket: GetTicket, request: TicketRequest): Promise<unknown> {
  try {
    return await getTicket(request)
  } catch (error) {
    if (error instanceof SandwireError) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new SandwireError('link_lost', `Cannot get a ticket: ${printable(why)}`, { cause: error })
  }
}

/** The ticket as a subprotocol, the only place where a page can put a credential for a WebSocket. */
export async function ticketProtocol(
  getTicket: GetTicket,
  { sandbox, session: asked, role }: AttachRequest,
  known: string | undefined,
): Promise<string> {
  const session = known ?? asked
  const ticket = await askFor(getTicket, {
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(session === undefined ? {} : { session }),
    ...(role === undefined ? {} : { role }),
  })
  if (typeof ticket !== 'string' || !TICKET.test(ticket))
    throw new SandwireError('bad_request', 'Cannot use the ticket: getTicket must return a string')
  return `sandwire.ticket.${ticket}`
}
