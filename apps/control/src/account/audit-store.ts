import { type AuditEntry, cleanEntry, isRefusal } from '../audit/entry.ts'
import type { LateRefusal } from '../sandbox/late-refusals.ts'
import type { Action } from '../audit/actions.ts'
import { numberOf, type Row, type Sql, textOf } from '../sql.ts'
import { AuditShares } from './audit-shares.ts'

/** How long a row is kept. */
export const AUDIT_LIFE_MS = 90 * 24 * 60 * 60 * 1000
/** Rows removed at a time, a few times what one delivery adds: no request waits for a long clean-up. */
const PRUNED_AT_ONCE = 500

/** What can be refused behind an answer: rows of these, whose ids end with them, may get another one. */
const LATE_ACTIONS: readonly Action[] = ['session.start', 'session.join', 'exec']

/** `seq` is the order of arrival; rows are told in the order of their times. */
export const AUDIT_MIGRATIONS: readonly string[] = [
  `CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at_ms INTEGER NOT NULL,
    actor TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    action TEXT NOT NULL,
    sandbox TEXT,
    sandbox_name TEXT,
    session TEXT,
    address TEXT NOT NULL,
    outcome TEXT NOT NULL,
    code TEXT,
    template TEXT,
    command TEXT,
    login TEXT,
    request_id TEXT NOT NULL,
    dropped INTEGER
  )`,
  'CREATE INDEX audit_by_time ON audit (at_ms, seq)',
  'CREATE INDEX audit_by_sandbox ON audit (sandbox, at_ms, seq)',
]
export const AUDIT_GRANT_MIGRATION = 'ALTER TABLE audit ADD COLUMN grant_id TEXT'
export const AUDIT_ACCOUNT_MIGRATION = 'ALTER TABLE audit ADD COLUMN account TEXT'

export interface AuditQuery {
  /** Id or name. */
  readonly sandbox?: string
  readonly action?: Action
  readonly sinceMs?: number
  /** `next` of an earlier page. */
  readonly before?: string
  readonly limit: number
}

/** A row as people are shown it. */
export interface AuditRow {
  readonly atMs: number
  readonly actor: string
  readonly actorName: string
  readonly action: Action
  readonly sandbox: string | null
  readonly sandboxName: string | null
  readonly session: string | null
  readonly grant: string | null
  readonly account: string | null
  readonly address: string
  readonly outcome: 'allowed' | 'refused'
  readonly code: string | null
  readonly template: string | null
  readonly command: string | null
  readonly login: string | null
  readonly requestId: string
  readonly dropped: number | null
}

export interface AuditPage {
  /** Newest first. */
  readonly rows: readonly AuditRow[]
  readonly next: string | null
}

function optionalText(row: Row, column: string): string | null {
  return row[column] === null ? null : textOf(row, column)
}

function toAuditRow(row: Row): AuditRow {
  return {
    atMs: numberOf(row, 'at_ms'),
    actor: textOf(row, 'actor'),
    actorName: textOf(row, 'actor_name'),
    action: textOf(row, 'action') as Action,
    sandbox: optionalText(row, 'sandbox'),
    sandboxName: optionalText(row, 'sandbox_name'),
    session: optionalText(row, 'session'),
    grant: optionalText(row, 'grant_id'),
    account: optionalText(row, 'account'),
    address: textOf(row, 'address'),
    outcome: textOf(row, 'outcome') === 'refused' ? 'refused' : 'allowed',
    code: optionalText(row, 'code'),
    template: optionalText(row, 'template'),
    command: optionalText(row, 'command'),
    login: optionalText(row, 'login'),
    requestId: textOf(row, 'request_id'),
    dropped: row['dropped'] === null ? null : numberOf(row, 'dropped'),
  }
}

/** The audit of one account. Its tables are made with those of the account's store. */
export class AuditStore {
  readonly #sql: Sql
  readonly #shares: AuditShares

  constructor(sql: Sql) {
    this.#sql = sql
    this.#shares = new AuditShares(sql)
  }

  /** Adds rows to the audit of `owner`; one that is there already is not added again. */
  add(entries: readonly AuditEntry[], owner: string, nowMs: number): void {
    const added = entries.map(cleanEntry).filter((entry) => this.#insert(entry))
    this.#added(
      added.map(({ actor }) => actor),
      owner,
      nowMs,
    )
  }

  /**
   * Adds what a sandbox says became of what was let in: a row beside the one that says so, which tells who and what. Nothing
   * is taken back, so that a sandbox can make nobody's row disappear, and one about a request that has no row is none.
   */
  addRefusals(sandbox: string, refusals: readonly LateRefusal[], owner: string, nowMs: number): void {
    const actors = refusals.flatMap((refusal) => this.#copyAsRefused(sandbox, refusal, nowMs))
    this.#added(actors, owner, nowMs)
  }

  /** Keeps the bounds after rows of these were added. */
  #added(actors: readonly string[], owner: string, nowMs: number): void {
    this.#shares.add(actors)
    this.prune(nowMs)
    for (const { actor, held } of this.#shares.surplus(owner, PRUNED_AT_ONCE))
      this.#delete('SELECT seq FROM audit WHERE actor = ? ORDER BY seq LIMIT ?', actor, held)
  }

  /** Returns whose row it was. */
  #copyAsRefused(sandbox: string, { requestId, code }: LateRefusal, nowMs: number): readonly string[] {
    const same =
      'actor, actor_name, action, sandbox, sandbox_name, session, address, template, command, login'
    return this.#sql
      .exec(
        `INSERT INTO audit (id, at_ms, outcome, code, request_id, grant_id, account, ${same})
         SELECT id || '.late', ?, ?, ?, request_id, grant_id, account, ${same} FROM audit
         WHERE id IN (?, ?, ?) AND sandbox = ? AND outcome = 'allowed' AND code IS NULL
         ON CONFLICT (id) DO NOTHING RETURNING actor`,
        nowMs,
        isRefusal(code) ? 'refused' : 'allowed',
        code,
        ...LATE_ACTIONS.map((action) => `${requestId}.${action}`),
        sandbox,
      )
      .toArray()
      .map((row) => textOf(row, 'actor'))
  }

  /** Removes some of what is too old. */
  prune(nowMs: number): void {
    this.#delete(
      'SELECT seq FROM audit WHERE at_ms <= ? ORDER BY at_ms LIMIT ?',
      nowMs - AUDIT_LIFE_MS,
      PRUNED_AT_ONCE,
    )
  }

  /** When the next row is too old; undefined when there is none. */
  get nextExpiryMs(): number | undefined {
    const [row] = this.#sql.exec('SELECT at_ms FROM audit ORDER BY at_ms LIMIT 1').toArray()
    return row === undefined ? undefined : numberOf(row, 'at_ms') + AUDIT_LIFE_MS
  }

  page(query: AuditQuery, nowMs: number): AuditPage {
    const { sandbox, action, sinceMs = 0, before, limit } = query
    const [beforeMs = '', beforeSeq = ''] = before?.split('-') ?? []
    const found = this.#sql
      .exec(
        `SELECT * FROM audit WHERE at_ms >= ?
         ${sandbox === undefined ? '' : 'AND (sandbox = ? OR sandbox_name = ?)'}
         ${action === undefined ? '' : 'AND action = ?'}
         ${before === undefined ? '' : 'AND (at_ms, seq) < (?, ?)'}
         ORDER BY at_ms DESC, seq DESC LIMIT ?`,
        Math.max(sinceMs, nowMs - AUDIT_LIFE_MS + 1),
        ...(sandbox === undefined ? [] : [sandbox, sandbox]),
        ...(action === undefined ? [] : [action]),
        ...(before === undefined ? [] : [Number(beforeMs), Number(beforeSeq)]),
        limit + 1,
      )
      .toArray()
    const shown = found.slice(0, limit)
    const last = shown.at(-1)
    const hasMore = found.length > limit && last !== undefined
    return {
      rows: shown.map(toAuditRow),
      next: hasMore ? `${numberOf(last, 'at_ms')}-${numberOf(last, 'seq')}` : null,
    }
  }

  /** Removes the rows whose numbers a query finds. */
  #delete(query: string, ...bindings: (string | number)[]): void {
    const gone = this.#sql.exec(`DELETE FROM audit WHERE seq IN (${query}) RETURNING actor`, ...bindings)
    this.#shares.remove(gone.toArray().map((row) => textOf(row, 'actor')))
  }

  /** False when it is there already. */
  #insert(entry: AuditEntry): boolean {
    const inserted = this.#sql.exec(
      `INSERT INTO audit (id, at_ms, actor, actor_name, action, sandbox, sandbox_name, session, address, outcome,
         code, template, command, login, request_id, dropped, grant_id, account)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING seq`,
      entry.id,
      entry.atMs,
      entry.actor,
      entry.actorName,
      entry.action,
      entry.sandbox ?? null,
      entry.sandboxName ?? null,
      entry.session ?? null,
      entry.address,
      entry.outcome,
      entry.code ?? null,
      entry.template ?? null,
      entry.command ?? null,
      entry.login ?? null,
      entry.requestId,
      entry.dropped ?? null,
      entry.grant ?? null,
      entry.account ?? null,
    )
    return inserted.toArray().length > 0
  }
}
