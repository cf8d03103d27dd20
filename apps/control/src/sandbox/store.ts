import { isIssuedBefore } from '../auth/identity.ts'
import { SESSION_ALIAS_SCHEMA, SessionAliases } from '../compat/session-aliases.ts'
import { Outbox, OUTBOX_SCHEMA } from '../outbox/outbox.ts'
import { ExecStore } from '../providers/sprites/exec-store.ts'
import { CONTAINER_SCHEMA, ContainerStore } from '../providers/container/container-store.ts'
import {
  type Exec,
  hasSchema,
  numberOf,
  openSchema,
  type Row,
  type Schema,
  type Sql,
  textOf,
} from '../sql.ts'
import type { Grant } from './access.ts'
import { AUDIT_OUTBOX } from './audit-log.ts'
import type { GrantRecord } from './grants.ts'
import type { CheckedConnection, RecheckedConnection } from './recheck-authorization.ts'
import type { SandboxRecord, SandboxSettings } from './record.ts'
import { HOLDER_OUTBOX } from './holder-index.ts'
import { DISCONNECT_OUTBOX } from './revocation.ts'
import type { SandboxState } from './state.ts'
import { ADDED_VERSION_TABLES, VERSION_SCHEMA } from '../versions/version-schema.ts'
import { type DestroyedSandbox, VersionStore } from '../versions/version-store.ts'
import { decodeTicket, encodeTicket, type LiveTicket, type TicketRecord } from './tickets.ts'

const SCHEMA: Schema = {
  version: 4,
  statements: [
    `CREATE TABLE sandbox (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      id TEXT NOT NULL,
      owner TEXT NOT NULL,
      name TEXT NOT NULL,
      created_ms INTEGER NOT NULL,
      settings TEXT NOT NULL,
      state TEXT NOT NULL,
      last_activity_ms INTEGER NOT NULL,
      has_files INTEGER NOT NULL
    )`,
    'CREATE TABLE pins (session TEXT PRIMARY KEY, pinned INTEGER NOT NULL)',
    `CREATE TABLE grants (
      id TEXT PRIMARY KEY,
      account TEXT,
      account_name TEXT NOT NULL,
      session TEXT,
      role TEXT NOT NULL,
      created_ms INTEGER NOT NULL,
      expires_ms INTEGER NOT NULL,
      link_hash TEXT,
      label TEXT NOT NULL,
      owner_name TEXT NOT NULL
    )`,
    `CREATE TABLE tickets (
      hash TEXT PRIMARY KEY,
      login TEXT,
      expires_ms INTEGER NOT NULL,
      ticket TEXT NOT NULL
    )`,
    'CREATE TABLE ended_logins (login TEXT PRIMARY KEY, ended_ms INTEGER NOT NULL, forget_ms INTEGER NOT NULL)',
    `CREATE TABLE rechecked_connections (
      key TEXT PRIMARY KEY,
      session TEXT NOT NULL,
      checked_ms INTEGER NOT NULL,
      connection TEXT NOT NULL
    )`,
    // Audit rows that were not written, counted per actor until the count itself is queued as a row.
    `CREATE TABLE dropped_audit_rows (
      actor TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      dropped INTEGER NOT NULL,
      since_ms INTEGER NOT NULL
    )`,
    ...SESSION_ALIAS_SCHEMA,
    ...OUTBOX_SCHEMA,
    ...CONTAINER_SCHEMA,
    ...VERSION_SCHEMA,
  ],
}

/** How long an ended sign-in is remembered: calls that were authenticated before it ended arrive sooner. */
const ENDED_LOGIN_MS = 10 * 60 * 1000
const MAX_ENDED_LOGINS = 1_000
/** Rechecked connections. Those of ended sessions are removed by each poll, so this is far more than can be open. */
const MAX_RECHECKED_CONNECTIONS = 10_000

function roleOf(row: Row): Grant['role'] {
  return textOf(row, 'role') === 'collaborator' ? 'collaborator' : 'viewer'
}

function optional<K extends string>(row: Row, column: string, key: K): Partial<Record<K, string>> {
  const value = row[column]
  const found: Partial<Record<K, string>> = {}
  if (typeof value === 'string') found[key] = value
  return found
}

function toHeldGrant(row: Row): Grant {
  return {
    id: textOf(row, 'id'),
    account: textOf(row, 'account'),
    role: roleOf(row),
    expiresMs: numberOf(row, 'expires_ms'),
    ...optional(row, 'session', 'session'),
  }
}

function toGrantRecord(row: Row): GrantRecord & { readonly linkHash?: string } {
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

/** Grants and tickets. */
class SharingStore {
  readonly #exec: Exec
  readonly #holderOutbox: Outbox

  constructor(exec: Exec, holderOutbox: Outbox) {
    this.#exec = exec
    this.#holderOutbox = holderOutbox
  }

  /** Grants that an account holds, expired ones too. */
  grantsOf(account: string): readonly Grant[] {
    return this.#exec('SELECT * FROM grants WHERE account = ?', account).map(toHeldGrant)
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
    return row === undefined ? undefined : toGrantRecord(row)
  }

  /** Grants that have not expired, oldest first. */
  liveGrants(nowMs: number): readonly GrantRecord[] {
    return this.#exec('SELECT * FROM grants WHERE expires_ms > ? ORDER BY created_ms, id', nowMs).map(
      toGrantRecord,
    )
  }

  /** Gives a grant to the account that redeemed its share link, and deletes the hash of the link's secret. */
  bindGrant(id: string, holder: { readonly account: string; readonly name: string }): void {
    this.#exec(
      'UPDATE grants SET account = ?, account_name = ?, link_hash = NULL WHERE id = ?',
      holder.account,
      holder.name,
      id,
    )
  }

  /** Removes a grant, and queues its removal from its holder's index. False when there is no such grant. */
  removeGrant(id: string, nowMs: number): boolean {
    const rows = this.#exec('DELETE FROM grants WHERE id = ? RETURNING id, account', id)
    this.#queueRemovals(rows, nowMs)
    return rows.length > 0
  }

  /** The same for expired grants; returns their ids. */
  removeExpiredGrants(nowMs: number): readonly string[] {
    const rows = this.#exec('DELETE FROM grants WHERE expires_ms <= ? RETURNING id, account', nowMs)
    this.#queueRemovals(rows, nowMs)
    return rows.map((row) => textOf(row, 'id'))
  }

  #queueRemovals(rows: readonly Row[], nowMs: number): void {
    for (const row of rows)
      if (typeof row['account'] === 'string')
        this.#holderOutbox.enqueue({ destination: row['account'], key: textOf(row, 'id'), body: '' }, nowMs)
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

  /** Removes and returns a ticket in one statement, so that it is used once. */
  takeTicket(hash: string, nowMs: number): TicketRecord | undefined {
    const [row] = this.#exec('DELETE FROM tickets WHERE hash = ? RETURNING ticket, expires_ms', hash)
    if (row === undefined || numberOf(row, 'expires_ms') <= nowMs) return undefined
    return decodeTicket(textOf(row, 'ticket'))
  }

  /** Tickets that can still be used; deletes the expired ones. */
  liveTickets(nowMs: number): readonly LiveTicket[] {
    this.#exec('DELETE FROM tickets WHERE expires_ms <= ?', nowMs)
    return this.#exec('SELECT ticket, expires_ms FROM tickets').map((row) => ({
      account: decodeTicket(textOf(row, 'ticket')).account,
      expiresMs: numberOf(row, 'expires_ms'),
    }))
  }

  removeTicketsOfAccount(account: string): void {
    this.#exec("DELETE FROM tickets WHERE json_extract(ticket, '$.account') = ?", account)
  }

  removeTickets(): void {
    this.#exec('DELETE FROM tickets')
  }

  removeTicketsOfLogin(login: string): void {
    this.#exec('DELETE FROM tickets WHERE login = ?', login)
  }
}

/** Sign-ins that ended lately. */
class EndedLogins {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  add(login: string, endedMs: number, nowMs: number): void {
    this.#exec('DELETE FROM ended_logins WHERE forget_ms <= ?', nowMs)
    this.#exec(
      `INSERT INTO ended_logins (login, ended_ms, forget_ms) VALUES (?, ?, ?)
       ON CONFLICT (login) DO UPDATE SET ended_ms = MAX(ended_ms, excluded.ended_ms), forget_ms = excluded.forget_ms`,
      login,
      endedMs,
      nowMs + ENDED_LOGIN_MS,
    )
    this.#exec(
      'DELETE FROM ended_logins WHERE login NOT IN (SELECT login FROM ended_logins ORDER BY forget_ms DESC LIMIT ?)',
      MAX_ENDED_LOGINS,
    )
  }

  /** True when a credential of this sign-in was issued before the sign-in ended, or may have been: not all have an issue time. */
  includes(login: string, issuedMs: number | undefined, nowMs: number): boolean {
    const [row] = this.#exec('SELECT ended_ms, forget_ms FROM ended_logins WHERE login = ?', login)
    if (row === undefined || !isIssuedBefore(numberOf(row, 'ended_ms'), issuedMs)) return false
    return issuedMs !== undefined || numberOf(row, 'forget_ms') > nowMs
  }
}

function keyOf({ session, identity, login, grant }: RecheckedConnection): string {
  return JSON.stringify([session, identity, login, grant])
}

/** Connections that control rechecks; connections of a session with the same authorization share a row. */
class RecheckedConnections {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  get isFull(): boolean {
    const [row] = this.#exec('SELECT COUNT(*) AS count FROM rechecked_connections')
    return row !== undefined && numberOf(row, 'count') >= MAX_RECHECKED_CONNECTIONS
  }

  add(connection: RecheckedConnection, nowMs: number): void {
    this.#exec(
      'INSERT OR REPLACE INTO rechecked_connections VALUES (?, ?, ?, ?)',
      keyOf(connection),
      connection.session,
      nowMs,
      JSON.stringify(connection),
    )
  }

  all(): readonly CheckedConnection[] {
    return this.#exec('SELECT connection, checked_ms FROM rechecked_connections ORDER BY checked_ms').map(
      (row) => ({
        ...(JSON.parse(textOf(row, 'connection')) as RecheckedConnection),
        checkedMs: numberOf(row, 'checked_ms'),
      }),
    )
  }

  setChecked(connection: RecheckedConnection, nowMs: number): void {
    this.#exec('UPDATE rechecked_connections SET checked_ms = ? WHERE key = ?', nowMs, keyOf(connection))
  }

  remove(connection: RecheckedConnection): void {
    this.#exec('DELETE FROM rechecked_connections WHERE key = ?', keyOf(connection))
  }

  removeOfSession(session: string): void {
    this.#exec('DELETE FROM rechecked_connections WHERE session = ?', session)
  }
}

/** Audit rows of one actor that were not written. */
export interface DroppedRows {
  readonly actor: string
  readonly actorName: string
  readonly dropped: number
  /** Time of the first. */
  readonly sinceMs: number
}

class DroppedAuditRows {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  add({ actor, actorName, dropped, sinceMs }: DroppedRows): void {
    this.#exec(
      `INSERT INTO dropped_audit_rows VALUES (?, ?, ?, ?)
       ON CONFLICT (actor) DO UPDATE SET
         dropped = dropped + excluded.dropped, since_ms = MIN(since_ms, excluded.since_ms)`,
      actor,
      actorName,
      dropped,
      sinceMs,
    )
  }

  /** When the oldest count began; undefined when no row was dropped. */
  get oldestMs(): number | undefined {
    const [row] = this.#exec('SELECT since_ms FROM dropped_audit_rows ORDER BY since_ms LIMIT 1')
    return row === undefined ? undefined : numberOf(row, 'since_ms')
  }

  /** Removes and returns the counts that began by this time. */
  take(untilMs: number): readonly DroppedRows[] {
    return this.#exec('DELETE FROM dropped_audit_rows WHERE since_ms <= ? RETURNING *', untilMs).map(
      (row) => ({
        actor: textOf(row, 'actor'),
        actorName: textOf(row, 'name'),
        dropped: numberOf(row, 'dropped'),
        sinceMs: numberOf(row, 'since_ms'),
      }),
    )
  }
}

/**
 * All SQL of a sandbox's object. The values are our own, so they are parsed but not validated. An object without a sandbox,
 * never created or destroyed, stays empty: reads return nothing and create no tables.
 */
export class SandboxStore {
  readonly #sql: Sql
  #hasTables = false
  readonly sharing: SharingStore
  readonly endedLogins: EndedLogins
  readonly recheckedConnections: RecheckedConnections
  readonly aliases: SessionAliases
  readonly droppedAuditRows: DroppedAuditRows
  /** Audit entries for the owner's account. */
  readonly auditOutbox: Outbox
  /** Grants to remove from the indexes of their holders. */
  readonly holderOutbox: Outbox
  /** Connections that sandboxd must close. */
  readonly disconnectOutbox: Outbox
  readonly container: ContainerStore
  /** Sessions that the provider runs. */
  readonly execs: ExecStore
  /** Saved versions of its files. */
  readonly versions: VersionStore

  constructor(sql: Sql) {
    this.#sql = sql
    const exec: Exec = (query, ...bindings) => this.#exec(query, ...bindings)
    this.holderOutbox = new Outbox(exec, HOLDER_OUTBOX)
    this.sharing = new SharingStore(exec, this.holderOutbox)
    this.endedLogins = new EndedLogins(exec)
    this.recheckedConnections = new RecheckedConnections(exec)
    this.aliases = new SessionAliases(exec)
    this.droppedAuditRows = new DroppedAuditRows(exec)
    this.auditOutbox = new Outbox(exec, AUDIT_OUTBOX)
    this.disconnectOutbox = new Outbox(exec, DISCONNECT_OUTBOX)
    this.container = new ContainerStore(exec)
    this.execs = new ExecStore(exec)
    this.versions = new VersionStore(exec)
    if (hasSchema(sql)) this.#createTables()
  }

  read(): SandboxRecord | undefined {
    const [row] = this.#exec('SELECT * FROM sandbox')
    if (row === undefined) return undefined
    return {
      id: textOf(row, 'id'),
      owner: textOf(row, 'owner'),
      name: textOf(row, 'name'),
      createdMs: numberOf(row, 'created_ms'),
      settings: JSON.parse(textOf(row, 'settings')) as SandboxSettings,
      state: JSON.parse(textOf(row, 'state')) as SandboxState,
      lastActivityMs: numberOf(row, 'last_activity_ms'),
      hasFiles: numberOf(row, 'has_files') === 1,
    }
  }

  /** Inserts the record unless there is one. */
  insert(record: Omit<SandboxRecord, 'hasFiles'>): void {
    this.#createTables()
    this.#exec(
      'INSERT INTO sandbox VALUES (1, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING',
      record.id,
      record.owner,
      record.name,
      record.createdMs,
      JSON.stringify(record.settings),
      JSON.stringify(record.state),
      record.lastActivityMs,
    )
  }

  /** To be called after all data, including the tables, was deleted. */
  reset(): void {
    this.#hasTables = false
  }

  /** Stores again what forks need, after everything was deleted. */
  keepForForks(destroyed: DestroyedSandbox, nowMs: number): void {
    this.#createTables()
    this.versions.keepForForks(destroyed, nowMs)
  }

  setState(state: SandboxState): void {
    // Unchanged state is not written: row writes are billed, and most polls find no change.
    const text = JSON.stringify(state)
    // Stored before a process of a user can run: nothing is sent to sandboxd until this is durable.
    const hasFiles = state.kind === 'running' ? 1 : 0
    this.#exec(
      'UPDATE sandbox SET state = ?, has_files = MAX(has_files, ?) WHERE state <> ?',
      text,
      hasFiles,
      text,
    )
  }

  setSettings(settings: SandboxSettings): void {
    this.#exec('UPDATE sandbox SET settings = ?', JSON.stringify(settings))
  }

  /** Records activity; an older time changes nothing. */
  touch(ms: number): void {
    const atMs = Math.round(ms)
    this.#exec('UPDATE sandbox SET last_activity_ms = ? WHERE last_activity_ms < ?', atMs, atMs)
  }

  /** Sessions pinned or unpinned after their start. */
  pins(): ReadonlyMap<string, boolean> {
    const rows = this.#exec('SELECT session, pinned FROM pins')
    return new Map(rows.map((row) => [textOf(row, 'session'), numberOf(row, 'pinned') === 1]))
  }

  setPin(session: string, pinned: boolean): void {
    this.#exec('INSERT OR REPLACE INTO pins VALUES (?, ?)', session, pinned ? 1 : 0)
  }

  removePin(session: string): void {
    this.#exec('DELETE FROM pins WHERE session = ?', session)
  }

  #createTables(): void {
    if (this.#hasTables) return
    openSchema(this.#sql, SCHEMA)
    for (const statement of ADDED_VERSION_TABLES) this.#sql.exec(statement)
    this.#hasTables = true
  }

  #exec(query: string, ...bindings: (string | number | null)[]): readonly Row[] {
    return this.#hasTables ? this.#sql.exec(query, ...bindings).toArray() : []
  }
}
