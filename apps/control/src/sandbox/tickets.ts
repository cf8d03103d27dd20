import { isSandboxId } from '@sandwire/internal-api'
import { type Role, ROLES } from '@sandwire/protocol'
import { z } from 'zod'
import { type Scope, SCOPES } from '../auth/identity.ts'

/** Longest lifetime of a ticket: enough for a slow page to open its socket, too short for a copied ticket. */
export const MAX_TICKET_MS = 30_000
/** Unused tickets of one sandbox: of its owner, of all other accounts together, and of each of them. */
const MAX_OWN = 100
const MAX_OTHERS = 100
const MAX_EACH = 20

const SECRET = /^[A-Za-z0-9_-]{43}$/
/** Scopes that a ticket can have: it opens a socket and nothing else. */
const TICKET_SCOPES: readonly Scope[] = ['connect', 'exec']

const ticketSchema = z.object({
  account: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  login: z.string().exactOptional(),
  token: z.string().exactOptional(),
  issuedMs: z.number().exactOptional(),
  expiresMs: z.number().exactOptional(),
  session: z.string().exactOptional(),
  role: z.enum(ROLES),
  origin: z.string().nullable(),
})

/** What is stored for a ticket. */
export type TicketRecord = Readonly<z.infer<typeof ticketSchema>>

export interface TicketRequest {
  /** SHA-256 of the ticket; the ticket itself is never stored. */
  readonly hash: string
  /** Session that it joins; absent: it starts one. */
  readonly session?: string
  /** Highest role of the connection; absent: the highest that the caller may have. */
  readonly role?: Role
  /** Origin of the page that uses it; null for a program. */
  readonly origin: string | null
}

/** A ticket that was not used yet. */
export interface LiveTicket {
  readonly account: string
  readonly expiresMs: number
}

/** How long an account must wait for a ticket; 0: not at all. One account alone cannot use up the tickets of the others. */
export function ticketWaitMs(
  live: readonly LiveTicket[],
  { account, owner, nowMs }: { readonly account: string; readonly owner: string; readonly nowMs: number },
): number {
  const waitFor = (tickets: readonly LiveTicket[], max: number): number => {
    const ends = tickets.map(({ expiresMs }) => expiresMs).toSorted((left, right) => left - right)
    // Enough of them must expire to leave room for one.
    const last = ends[ends.length - max]
    return last === undefined ? 0 : Math.max(1, last - nowMs)
  }
  const own = live.filter((ticket) => ticket.account === account)
  if (account === owner) return waitFor(own, MAX_OWN)
  const others = live.filter((ticket) => ticket.account !== owner)
  return Math.max(waitFor(own, MAX_EACH), waitFor(others, MAX_OTHERS))
}

/** The scopes of a ticket for a credential with these scopes. */
export function ticketScopes(scopes: readonly Scope[]): Scope[] {
  return TICKET_SCOPES.filter((scope) => scopes.includes(scope))
}

/** The sandbox of a ticket, or undefined when the ticket is malformed. */
export function sandboxOfTicket(ticket: string): string | undefined {
  const [sandbox = '', secret = '', ...rest] = ticket.split('.')
  return isSandboxId(sandbox) && SECRET.test(secret) && rest.length === 0 ? sandbox : undefined
}

export function encodeTicket(ticket: TicketRecord): string {
  return JSON.stringify(ticket)
}

export function decodeTicket(text: string): TicketRecord {
  return ticketSchema.parse(JSON.parse(text))
}
