import { numberOf, type Row, textOf } from '../sql.ts'
import type { Grant } from './access.ts'
import type { GrantRecord } from './grants.ts'
import { decodeTicket, encodeTicket, type OutTicket, type TicketRecord } from './tickets.ts'

type Exec = (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

function roleOf(row: Row): Grant['role'] {
  return textOf(row, 'role') === 'collaborator' ? 'collaborator' : 'viewer'
}

function optional<K extends string>(row: Row, column: string, key: K): Partial<Record<K, string>> {
  const value = row[column]
  const found: Partial<Record<K, string>> = {}
  if (typeof value === 'string') found[key] = value
  return found
}

function toGrant(row: Row): Grant {
  return {
    id: textOf(row, 'id'),
    account: textOf(row, 'account'),
    role: roleOf(row),
    expiresMs: numberOf(row, 'expires_ms'),
    ...optional(row, 'session', 'session'),
  }
}

function toRecord(row: Row): GrantRecord & { readonly linkHash?: string } {
  const account = row['account']
  return {
    id: textOf(row, 'id'),
    role: roleOf(row),
    label: textOf(row, 'label'),
    createdMs: numberOf(row, 'created_ms'),
    expiresMs: numberOf(row, 'expires_ms'),
    ownerName: textOf(row, 'owner_name'),
    ...optional(row, 'session', 'session'),
    ...optional(row, 'link_hash', 'linkHash'),
    ...(typeof account === 'string' ? { holder: { account, name: textOf(row, 'account_name') } } : {}),
  }
}

/** SQL of what a sandbox's object knows about sharing: grants and tickets. */
export class SharingStore {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  /** Grants that an account holds, expired ones too. */
  grantsOf(account: string): readonly Grant[] {
    return this.#exec('SELECT * FROM grants WHERE account = ?', account).map(toGrant)
  }

  insertGrant(grant: GrantRecord, linkHash: string | undefined): void {
    this.#exec(
      `INSERT INTO grants (id, account, session, role, created_ms, expires_ms, link_hash, label, owner_name, account_name)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      grant.id,
      grant.holder?.account ?? null,
      grant.session ?? null,
      grant.role,
      grant.createdMs,
      grant.expiresMs,
      linkHash ?? null,
      grant.label,
      grant.ownerName,
      grant.holder?.name ?? '',
    )
  }

  grant(id: string): (GrantRecord & { readonly linkHash?: string }) | undefined {
    const [row] = this.#exec('SELECT * FROM grants WHERE id = ?', id)
    return row === undefined ? undefined : toRecord(row)
  }

  /** Grants that have not expired, oldest first. */
  liveGrants(nowMs: number): readonly GrantRecord[] {
    return this.#exec('SELECT * FROM grants WHERE expires_ms > ? ORDER BY created_ms, id', nowMs).map(
      toRecord,
    )
  }

  /** Gives a grant to whoever exchanged its link, and erases what the link could be checked with. */
  bindGrant(id: string, holder: { readonly account: string; readonly name: string }): void {
    this.#exec(
      'UPDATE grants SET account = ?, account_name = ?, link_hash = NULL WHERE id = ?',
      holder.account,
      holder.name,
      id,
    )
  }

  /** Whether there was one. */
  removeGrant(id: string): boolean {
    return this.#exec('DELETE FROM grants WHERE id = ? RETURNING id', id).length > 0
  }

  /** Removes grants that have expired, and tells which. */
  removeExpiredGrants(nowMs: number): readonly string[] {
    return this.#exec('DELETE FROM grants WHERE expires_ms <= ? RETURNING id', nowMs).map((row) =>
      textOf(row, 'id'),
    )
  }

  /** When the next grant expires; undefined without grants. */
  nextGrantExpiry(): number | undefined {
    const [row] = this.#exec('SELECT MIN(expires_ms) AS next FROM grants')
    return row === undefined || row['next'] === null ? undefined : numberOf(row, 'next')
  }

  insertTicket(hash: string, ticket: TicketRecord, expiresMs: number): void {
    this.#exec(
      'INSERT INTO tickets (hash, login, expires_ms, ticket) VALUES (?, ?, ?, ?)',
      hash,
      ticket.login ?? null,
      expiresMs,
      encodeTicket(ticket),
    )
  }

  /** Takes a ticket out, in one statement: whoever gets it is the only one. */
  takeTicket(hash: string, nowMs: number): TicketRecord | undefined {
    const [row] = this.#exec('DELETE FROM tickets WHERE hash = ? RETURNING ticket, expires_ms', hash)
    if (row === undefined || numberOf(row, 'expires_ms') <= nowMs) return undefined
    return decodeTicket(textOf(row, 'ticket'))
  }

  /** Tickets that are out, once the expired ones are gone. */
  outTickets(nowMs: number): readonly OutTicket[] {
    this.#exec('DELETE FROM tickets WHERE expires_ms <= ?', nowMs)
    return this.#exec('SELECT ticket, expires_ms FROM tickets').map((row) => ({
      account: decodeTicket(textOf(row, 'ticket')).account,
      expiresMs: numberOf(row, 'expires_ms'),
    }))
  }

  /** Tickets of an account that is gone. */
  removeTicketsOfAccount(account: string): void {
    this.#exec("DELETE FROM tickets WHERE json_extract(ticket, '$.account') = ?", account)
  }

  removeTickets(): void {
    this.#exec('DELETE FROM tickets')
  }

  /** Tickets of a sign-in that ended. */
  removeTicketsOf(login: string): void {
    this.#exec('DELETE FROM tickets WHERE login = ?', login)
  }
}
