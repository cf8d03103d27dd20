import type { SandboxLimits } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { OUTBOX_SCHEMA } from '../outbox/outbox.ts'
import type { HeldGrant } from '../sandbox/grants.ts'
import type { SandboxView } from '../sandbox/record.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import { numberOf, openSchema, type Schema, type Sql, textOf } from '../sql.ts'
import type { RetentionSettings } from '../versions/retention.ts'
import { AUDIT_SCHEMA } from './audit-store.ts'
import { DESTROYED_LOGS_SCHEMA } from './destroyed-logs.ts'

const SCHEMA: Schema = {
  version: 3,
  statements: [
    // Sandboxes of the account; `view` is null until the sandbox's object was created.
    'CREATE TABLE sandboxes (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, view TEXT)',
    'CREATE TABLE sessions (id TEXT PRIMARY KEY, sandbox TEXT NOT NULL, facts TEXT NOT NULL)',
    // Every poll of a sandbox reads and replaces its own sessions.
    'CREATE INDEX sessions_by_sandbox ON sessions (sandbox)',
    `CREATE TABLE sign_ins (
      login TEXT PRIMARY KEY,
      hash TEXT NOT NULL UNIQUE,
      name TEXT NOT NULL,
      scopes TEXT NOT NULL,
      issuer TEXT,
      issuer_binding TEXT,
      created_ms INTEGER NOT NULL,
      expires_ms INTEGER NOT NULL
    )`,
    'CREATE TABLE used_states (hash TEXT PRIMARY KEY, expires_ms INTEGER NOT NULL)',
    'CREATE TABLE ended_tokens (login TEXT PRIMARY KEY, ended_ms INTEGER NOT NULL, forget_ms INTEGER NOT NULL)',
    `CREATE TABLE merged_ended_tokens (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      ended_ms INTEGER NOT NULL,
      forget_ms INTEGER NOT NULL
    )`,
    'CREATE TABLE account_deletion (one INTEGER PRIMARY KEY CHECK (one = 1), deleted_ms INTEGER NOT NULL)',
    // `seq` is the order of arrival.
    `CREATE TABLE held_grants (
      grant_id TEXT PRIMARY KEY,
      seq INTEGER NOT NULL,
      source TEXT NOT NULL,
      added_ms INTEGER NOT NULL,
      expires_ms INTEGER NOT NULL,
      held TEXT NOT NULL
    )`,
    'CREATE TABLE attach_budget (one INTEGER PRIMARY KEY CHECK (one = 1), tokens REAL NOT NULL, at_ms INTEGER NOT NULL)',
    // Which versions its sandboxes keep, JSON.
    'CREATE TABLE retention (one INTEGER PRIMARY KEY CHECK (one = 1), settings TEXT NOT NULL)',
    ...DESTROYED_LOGS_SCHEMA,
    ...AUDIT_SCHEMA,
    ...OUTBOX_SCHEMA,
  ],
}

/** How an account got a grant: it redeemed a share link, or the owner assigned the grant without asking. */
export type GrantSource = 'redeemed' | 'assigned'

/** Grants that an account can hold, counted by source: assigned grants never keep it from redeeming a share link. */
const MAX_HELD: Readonly<Record<GrantSource, number>> = { redeemed: 256, assigned: 64 }
/** A row is stored before the grant itself, so a row without a grant is kept this long. */
const UNCONFIRMED_MS = 60_000

/** A session in the account's index. */
export interface IndexedSession extends SessionFacts {
  readonly sandbox: string
  readonly sandboxName: string
}

/** What the sandboxes of an account use together. */
interface SandboxTotals {
  readonly running: Omit<SandboxLimits, 'diskBytes'> & { readonly count: number }
  readonly all: Pick<SandboxLimits, 'diskBytes'> & {
    readonly count: number
    /** Sandboxes whose limits are not known yet. */
    readonly unreported: readonly string[]
  }
}

/** The account's sandboxes and an index of their sessions. Creates the tables of all stores of the account's object. */
export class AccountStore {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
    openSchema(sql, SCHEMA)
  }

  /** What the sandboxes use together: those that run or may run, without one of them, and all. */
  usage(exceptRunning = ''): SandboxTotals {
    const [row] = this.#sql
      .exec(
        `SELECT COUNT(*) AS sandboxes, COALESCE(SUM(view ->> '$.limits.diskBytes'), 0) AS disk,
           COUNT(*) FILTER (WHERE runs) AS running,
           COALESCE(SUM(view ->> '$.limits.memoryBytes') FILTER (WHERE runs), 0) AS memory,
           COALESCE(SUM(view ->> '$.limits.milliCpus') FILTER (WHERE runs), 0) AS cpus,
           COALESCE(SUM(view ->> '$.limits.pids') FILTER (WHERE runs), 0) AS pids
         FROM (SELECT view, id <> ? AND view ->> '$.state' IN ('creating', 'running', 'stopping') AS runs FROM sandboxes)`,
        exceptRunning,
      )
      .toArray()
    if (row === undefined) throw new Error('A sum has no row')
    const unreported = this.#sql.exec('SELECT id FROM sandboxes WHERE view IS NULL').toArray()
    return {
      running: {
        count: numberOf(row, 'running'),
        memoryBytes: numberOf(row, 'memory'),
        milliCpus: numberOf(row, 'cpus'),
        pids: numberOf(row, 'pids'),
      },
      all: {
        count: numberOf(row, 'sandboxes'),
        diskBytes: numberOf(row, 'disk'),
        unreported: unreported.map((each) => textOf(each, 'id')),
      },
    }
  }

  /** Which versions its sandboxes keep, unless they have settings of their own. */
  get retention(): RetentionSettings {
    const [row] = this.#sql.exec('SELECT settings FROM retention').toArray()
    // Written by `setRetention`.
    return row === undefined ? {} : (JSON.parse(textOf(row, 'settings')) as RetentionSettings)
  }

  setRetention(settings: RetentionSettings): void {
    this.#sql.exec('INSERT OR REPLACE INTO retention VALUES (1, ?)', JSON.stringify(settings))
  }

  /** Sessions that have not ended, as last reported. */
  countLiveSessions(): number {
    const query = `SELECT COUNT(*) AS live FROM sessions WHERE facts ->> '$.state' IN ('pending', 'running')`
    const [row] = this.#sql.exec(query).toArray()
    return row === undefined ? 0 : numberOf(row, 'live')
  }

  /** A sandbox as it was last reported. */
  viewOf(id: string): SandboxView | undefined {
    const [row] = this.#sql.exec('SELECT view FROM sandboxes WHERE id = ? AND view IS NOT NULL', id).toArray()
    return row === undefined ? undefined : (JSON.parse(textOf(row, 'view')) as SandboxView)
  }

  idOf(name: string): string | undefined {
    const [row] = this.#sql.exec('SELECT id FROM sandboxes WHERE name = ?', name).toArray()
    return row === undefined ? undefined : textOf(row, 'id')
  }

  insertSandbox(id: string, name: string): void {
    this.#sql.exec('INSERT INTO sandboxes (id, name) VALUES (?, ?)', id, name)
  }

  /** Unknown sandboxes are not added: a report can arrive after the sandbox was destroyed. */
  setView(view: SandboxView): void {
    const text = JSON.stringify(view)
    this.#sql.exec('UPDATE sandboxes SET view = ? WHERE id = ? AND view IS NOT ?', text, view.id, text)
  }

  /** Replaces the sessions of a sandbox; unchanged ones are not written. */
  setSessions(sandbox: string, sessions: readonly SessionFacts[]): void {
    const rows = this.#sql.exec('SELECT id, facts FROM sessions WHERE sandbox = ?', sandbox).toArray()
    const known = new Map(rows.map((row) => [textOf(row, 'id'), textOf(row, 'facts')]))
    for (const session of sessions) {
      const facts = JSON.stringify(session)
      if (known.get(session.id) !== facts)
        this.#sql.exec(
          `INSERT INTO sessions (id, sandbox, facts) SELECT ?, id, ? FROM sandboxes WHERE id = ?
           ON CONFLICT (id) DO UPDATE SET sandbox = excluded.sandbox, facts = excluded.facts`,
          session.id,
          facts,
          sandbox,
        )
      known.delete(session.id)
    }
    for (const id of known.keys()) this.#sql.exec('DELETE FROM sessions WHERE id = ?', id)
  }

  removeSandbox(id: string): void {
    this.#sql.exec('DELETE FROM sessions WHERE sandbox = ?', id)
    this.#sql.exec('DELETE FROM sandboxes WHERE id = ?', id)
  }

  /** Sandboxes by name. One whose creation was interrupted has no view yet. */
  sandboxes(): readonly { readonly id: string; readonly name: string; readonly view?: SandboxView }[] {
    return this.#sql
      .exec('SELECT id, name, view FROM sandboxes ORDER BY name')
      .toArray()
      .map((row) => ({
        id: textOf(row, 'id'),
        name: textOf(row, 'name'),
        ...(row['view'] === null ? {} : { view: JSON.parse(textOf(row, 'view')) as SandboxView }),
      }))
  }

  sessions(): readonly IndexedSession[] {
    return this.#sql
      .exec(
        `SELECT sessions.facts, sandboxes.id AS sandbox, sandboxes.name AS name
         FROM sessions JOIN sandboxes ON sandboxes.id = sessions.sandbox ORDER BY name, sessions.id`,
      )
      .toArray()
      .map((row) => ({
        ...(JSON.parse(textOf(row, 'facts')) as SessionFacts),
        sandbox: textOf(row, 'sandbox'),
        sandboxName: textOf(row, 'name'),
      }))
  }
}

function tooManyGrants(source: GrantSource): SandwireError {
  return new SandwireError(
    'too_many_grants',
    source === 'assigned'
      ? 'Cannot share with this account: it holds too many grants; use a share link'
      : `Cannot join: you hold ${MAX_HELD.redeemed} grants already; leave one first`,
  )
}

/**
 * Index of the grants that an account holds. The grant in the sandbox's object decides; a row here only locates it, and is
 * removed when the grant is gone. Rows are never evicted: they name the sandboxes that must be notified of a sign-out or of the
 * account's deletion.
 */
export class HeldGrants {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Throws `too_many_grants` at the limit. */
  add(held: HeldGrant, source: GrantSource, nowMs: number): void {
    this.#sql.exec('DELETE FROM held_grants WHERE expires_ms <= ?', nowMs)
    const others = this.#sql
      .exec('SELECT grant_id FROM held_grants WHERE source = ? AND grant_id <> ?', source, held.grant)
      .toArray().length
    if (others >= MAX_HELD[source]) throw tooManyGrants(source)
    this.#sql.exec(
      `INSERT OR REPLACE INTO held_grants (grant_id, seq, source, added_ms, expires_ms, held)
       SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, ?, ? FROM held_grants`,
      held.grant,
      source,
      nowMs,
      held.expiresMs,
      JSON.stringify(held),
    )
  }

  remove(grant: string): void {
    this.#sql.exec('DELETE FROM held_grants WHERE grant_id = ?', grant)
  }

  /** Removes a row whose grant was not found, unless the grant may still be being stored. */
  removeMissing(grant: string, nowMs: number): void {
    this.#sql.exec(
      'DELETE FROM held_grants WHERE grant_id = ? AND added_ms <= ?',
      grant,
      nowMs - UNCONFIRMED_MS,
    )
  }

  /** Grants that have not expired, in the order of their arrival. */
  list(nowMs: number): readonly HeldGrant[] {
    return this.#sql
      .exec('SELECT held FROM held_grants WHERE expires_ms > ? ORDER BY seq', nowMs)
      .toArray()
      .map((row) => JSON.parse(textOf(row, 'held')) as HeldGrant)
  }
}

/** Tokens that were left at a time. */
interface TokenLevel {
  readonly tokens: number
  readonly atMs: number
}

/**
 * Token bucket for the attaches of an account; a burst of one minute is allowed. The level is stored once it is below half,
 * so that eviction of the object refills nothing for a busy account, and a quiet one writes nothing.
 */
export class AttachBudget {
  readonly #sql: Sql
  #level: TokenLevel | undefined

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Takes one token; throws `too_many_attaches` when none is left. 0 per minute: no limit. */
  take(perMinute: number, nowMs: number): void {
    if (perMinute === 0) return
    const perMs = perMinute / 60_000
    const before = this.#read() ?? { tokens: perMinute, atMs: nowMs }
    const elapsedMs = Math.max(0, nowMs - before.atMs)
    const tokens = Math.min(perMinute, before.tokens + elapsedMs * perMs)
    if (tokens < 1) {
      // Otherwise a clock that was set back would refuse attaches until it catches up.
      if (nowMs < before.atMs) this.#write({ tokens, atMs: nowMs }, true)
      const message = `Cannot attach more than ${perMinute} times a minute`
      throw new SandwireError('too_many_attaches', message, { retryAfterMs: (1 - tokens) / perMs })
    }
    this.#write({ tokens: tokens - 1, atMs: nowMs }, tokens - 1 < perMinute / 2)
  }

  #read(): TokenLevel | undefined {
    if (this.#level !== undefined) return this.#level
    const [row] = this.#sql.exec('SELECT tokens, at_ms FROM attach_budget').toArray()
    return row === undefined ? undefined : { tokens: numberOf(row, 'tokens'), atMs: numberOf(row, 'at_ms') }
  }

  #write(level: TokenLevel, isLow: boolean): void {
    this.#level = level
    if (isLow)
      this.#sql.exec('INSERT OR REPLACE INTO attach_budget VALUES (1, ?, ?)', level.tokens, level.atMs)
  }
}
