import { isSandboxId } from '@sandwire/internal-api'
import { type Role, ROLES } from '@sandwire/protocol'
import { z } from 'zod'
import { type Scope, SCOPES } from '../auth/identity.ts'

/** Longest life of a ticket: a slow page gets its socket open, a copied ticket is soon worthless. */
export const MAX_TICKET_MS = 30_000
/** Tickets of one sandbox that are out at once: of its owner, of all others together, and of each of these. */
const MAX_OWN = 100
const MAX_OTHERS = 100
const MAX_EACH = 20

const SECRET = /^[A-Za-z0-9_-]{43}$/
/** What a ticket is good for of what its credential is: it opens a socket, and nothing else. */
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

/** What a ticket stands for. */
export type TicketRecord = Readonly<z.infer<typeof ticketSchema>>

/** What a ticket is asked for with. */
export interface TicketRequest {
  /** SHA-256 of the ticket; the ticket itself is never stored. */
  readonly hash: string
  /** Session that it joins; absent: it starts one. */
  readonly session?: string
  /** The most the connection may be; absent: as much as its person may. */
  readonly role?: Role
  /** Origin of the page that uses it; null: a program does. */
  readonly origin: string | null
}

/** A ticket that is out. */
export interface OutTicket {
  readonly account: string
  readonly expiresMs: number
}

/** How long an account has to wait for a ticket; 0 when it need not. Nobody waits because of what one other asked for. */
export function ticketWaitMs(
  out: readonly OutTicket[],
  { account, owner, nowMs }: { readonly account: string; readonly owner: string; readonly nowMs: number },
): number {
  const waitFor = (tickets: readonly OutTicket[], most: number): number => {
    const ends = tickets.map(({ expiresMs }) => expiresMs).toSorted((left, right) => left - right)
    // As many have to end as leave room for one.
    const last = ends[ends.length - most]
    return last === undefined ? 0 : Math.max(1, last - nowMs)
  }
  const own = out.filter((ticket) => ticket.account === account)
  if (account === owner) return waitFor(own, MAX_OWN)
  const others = out.filter((ticket) => ticket.account !== owner)
  return Math.max(waitFor(own, MAX_EACH), waitFor(others, MAX_OTHERS))
}

/** The scopes of a ticket for a credential with these. */
export function ticketScopes(scopes: readonly Scope[]): Scope[] {
  return TICKET_SCOPES.filter((scope) => scopes.includes(scope))
}

/** The sandbox that a ticket is for, or undefined when it is spelled wrong. */
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
