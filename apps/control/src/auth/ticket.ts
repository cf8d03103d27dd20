import { SandwireError } from '@sandwire/protocol'
import { sha256Hex } from '../bytes.ts'
import type { TakenTicket } from '../sandbox/sharing.ts'
import { sandboxOfTicket } from '../sandbox/tickets.ts'
import { type Authenticator, type Identity, notAccepted } from './authenticator.ts'

/** A browser cannot set headers on an upgrade, but it can offer subprotocols; this one is never spoken. */
const OFFER = 'sandwire.ticket.'

export interface TicketDependencies {
  /** Whether this sandbox id was minted here. An invented one must touch no object. */
  readonly isMinted: (sandbox: string) => Promise<boolean>
  /** Takes the ticket out of the sandbox's object; null when it is not good. */
  readonly take: (sandbox: string, hash: string, origin: string | null) => Promise<TakenTicket | null>
}

/** The tickets that an upgrade offers. */
function offersOf(headers: Headers): readonly string[] {
  return (headers.get('sec-websocket-protocol') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name.startsWith(OFFER))
    .map((name) => name.slice(OFFER.length))
}

/** Whether an upgrade offers a ticket, good or not: then that alone says who asks. */
export function hasTicket(headers: Headers): boolean {
  return offersOf(headers).length > 0
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

/** Accepts a ticket, once. */
export function ticket({ isMinted, take }: TicketDependencies): Authenticator {
  return {
    async authenticate(headers) {
      const [offer, ...more] = offersOf(headers)
      if (offer === undefined) return undefined
      // Two credentials could be of two people, and whoever reads the request next might take the other one.
      if (more.length > 0 || headers.has('authorization'))
        throw new SandwireError('unauthorized', 'Cannot authenticate: more than one credential was sent')
      const sandbox = sandboxOfTicket(offer)
      const taken =
        sandbox !== undefined && (await isMinted(sandbox))
          ? await take(sandbox, await sha256Hex(offer), headers.get('origin'))
          : null
      if (taken === null) throw notAccepted('the ticket was used, has expired or is not for this page')
      return toIdentity(taken)
    },
  }
}
