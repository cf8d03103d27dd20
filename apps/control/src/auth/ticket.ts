import { sha256Hex } from '../bytes.ts'
import type { TakenTicket } from '../sandbox/sharing.ts'
import { sandboxOfTicket } from '../sandbox/tickets.ts'
import { type Authenticator, type Identity, unauthorized } from './identity.ts'

/** Browsers cannot set headers on an upgrade but can offer subprotocols; this one is never selected. */
const OFFER = 'sandwire.ticket.'

export interface TicketDependencies {
  /** False for an invented sandbox id, for which no object must be created. */
  readonly isMinted: (sandbox: string) => Promise<boolean>
  /** Consumes the ticket in the sandbox's object; null if it is not valid. */
  readonly take: (sandbox: string, hash: string, origin: string | null) => Promise<TakenTicket | null>
}

function ticketsOf(headers: Headers): readonly string[] {
  return (headers.get('sec-websocket-protocol') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name.startsWith(OFFER))
    .map((name) => name.slice(OFFER.length))
}

/** True if an upgrade offers a ticket, valid or not; then no other credential counts. */
export function hasTicket(headers: Headers): boolean {
  return ticketsOf(headers).length > 0
}

function toIdentity(taken: TakenTicket): Identity {
  const { account, name, scopes, login, token, issuedMs, expiresMs, ...ticket } = taken
  const { sandbox, session, role } = ticket
  return {
    account,
    name,
    scopes,
    via: 'ticket',
    ...(login === undefined ? {} : { login }),
    ...(token === undefined ? {} : { token }),
    ...(issuedMs === undefined ? {} : { issuedMs }),
    ...(expiresMs === undefined ? {} : { expiresMs }),
    ticket: {
      sandbox,
      role,
      ...(session === undefined ? {} : { session }),
    },
  }
}

/** Authenticates an upgrade by its ticket, which is thereby used. */
export function createTicketAuthenticator({ isMinted, take }: TicketDependencies): Authenticator {
  return {
    async authenticate(headers) {
      const [offer, ...more] = ticketsOf(headers)
      if (offer === undefined) return undefined
      // Two credentials could identify two accounts.
      if (more.length > 0 || headers.has('authorization'))
        throw unauthorized('more than one credential was sent')
      const sandbox = sandboxOfTicket(offer)
      const taken =
        sandbox !== undefined && (await isMinted(sandbox))
          ? await take(sandbox, await sha256Hex(offer), headers.get('origin'))
          : null
      if (taken === null) throw unauthorized('the ticket was used, has expired or is not for this origin')
      return toIdentity(taken)
    },
  }
}
