import { type AuditEntry, cleanEntry, isRefusal } from '../audit/entry.ts'
import type { LateRefusal } from '../sandbox/late-refusals.ts'
import type { Action } from '../audit/actions.ts'
import { numberOf, type Row, type Sql, textOf } from '../sql.ts'

/** How long a row is stored. */
export const AUDIT_LIFE_MS = 90 * 24 * 60 * 60 * 1000
/** Rows deleted at a time, a few times what one delivery adds: no request waits for a long cleanup. */
const PRUNED_AT_ONCE = 500

/** Actions that sandboxd can refuse after control allowed them; the ids of their rows end with the action. */
const LATE_ACTIONS: readonly Action[] = ['session.start', 'session.join', 'exec']

/** Most rows of the owner's own actions. */
export const MAX_OWN_ROWS = 50_000
/** Most rows of all other actors together. */
export const MAX_OTHERS_ROWS = 50_000

export const AUDIT_SCHEMA: readonly string[] = [
  // `seq` is the order of arrival; pages are in the order of `at_ms`.
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
    grant_id TEXT,
    account TEXT,
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
  'CREATE INDEX audit_by_actor ON audit (actor, seq)',
  // Rows per actor, so that they need not be counted.
  'CREATE TABLE audit_row_counts (actor TEXT PRIMARY KEY, rows INTEGER NOT NULL)',
]

export interface AuditQuery {
  /** Id or name. */
  readonly sandbox?: string
  readonly action?: Action
  readonly sinceMs?: number
  /** `next` of an earlier page. */
  readonly before?: string
  readonly limit: number
}

/** A row as the API shows it. */
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

/** The audit of one account. `AccountStore` creates its tables. */
export class AuditStore {
  readonly #sql: Sql
  readonly #rowCounts: RowCounts

  constructor(sql: Sql) {
    this.#sql = sql
    this.#rowCounts = new RowCounts(sql)
  }

  /** Adds rows to the audit of `owner`; a row with a known id is ignored. */
  add(entries: readonly AuditEntry[], owner: string, nowMs: number): void {
    const added = entries.map(cleanEntry).filter((entry) => this.#insert(entry))
    this.#added(
      added.map(({ actor }) => actor),
      owner,
      nowMs,
    )
  }

  /**
   * Adds refusals that a sandbox reports for requests that control allowed: a second row beside the first, which says who did
   * what. Rows are never changed, so that a sandbox can hide nothing; refusals of requests without a row are ignored.
   */
  addRefusals(sandbox: string, refusals: readonly LateRefusal[], owner: string, nowMs: number): void {
    const actors = refusals.flatMap((refusal) => this.#copyAsRefused(sandbox, refusal, nowMs))
    this.#added(actors, owner, nowMs)
  }

  /** Updates the counts and enforces the limits after rows of these actors were added. */
  #added(actors: readonly string[], owner: string, nowMs: number): void {
    this.#rowCounts.add(actors)
    this.prune(nowMs)
    for (const { actor, rows } of this.#rowCounts.surplus(owner, PRUNED_AT_ONCE))
      this.#delete('SELECT seq FROM audit WHERE actor = ? ORDER BY seq LIMIT ?', actor, rows)
  }

  /** Returns the actor of the row that was added, if any. */
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

  /** Deletes expired rows, up to a limit. */
  prune(nowMs: number): void {
    this.#delete(
      'SELECT seq FROM audit WHERE at_ms <= ? ORDER BY at_ms LIMIT ?',
      nowMs - AUDIT_LIFE_MS,
      PRUNED_AT_ONCE,
    )
  }

  /** When the next row expires; undefined when there is none. */
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

  /** Deletes the rows that a query selects. */
  #delete(query: string, ...bindings: (string | number)[]): void {
    const gone = this.#sql.exec(`DELETE FROM audit WHERE seq IN (${query}) RETURNING actor`, ...bindings)
    this.#rowCounts.remove(gone.toArray().map((row) => textOf(row, 'actor')))
  }

  /** False when a row with this id exists. */
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

interface RowCount {
  readonly actor: string
  readonly rows: number
}

/**
 * How many rows of which actors to delete so that `surplus` rows go: those with the most rows are reduced to a common level, actors
 * below it lose none.
 */
function levelDown(counts: readonly RowCount[], surplus: number): readonly RowCount[] {
  const largestFirst = counts.toSorted((a, b) => b.rows - a.rows)
  let left = surplus
  let level = largestFirst[0]?.rows ?? 0
  let count = 0
  for (const { rows } of largestFirst) {
    if ((level - rows) * count >= left) break
    left -= (level - rows) * count
    level = rows
    count += 1
  }
  level -= Math.ceil(left / Math.max(count, 1))
  let open = surplus
  return largestFirst.slice(0, count).map(({ actor, rows }) => {
    const taken = Math.min(open, rows - level)
    open -= taken
    return { actor, rows: taken }
  })
}

/** Number of rows per actor. */
class RowCounts {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Counts an added row for each actor given. */
  add(actors: readonly string[]): void {
    for (const [actor, count] of tally(actors))
      this.#sql.exec(
        'INSERT INTO audit_row_counts VALUES (?, ?) ON CONFLICT (actor) DO UPDATE SET rows = rows + excluded.rows',
        actor,
        count,
      )
  }

  /** Counts a deleted row for each actor given. */
  remove(actors: readonly string[]): void {
    for (const [actor, count] of tally(actors)) {
      this.#sql.exec('UPDATE audit_row_counts SET rows = rows - ? WHERE actor = ?', count, actor)
      this.#sql.exec('DELETE FROM audit_row_counts WHERE actor = ? AND rows <= 0', actor)
    }
  }

  /** Rows to delete per actor; at most `atOnce` of the owner's and of the others' each. */
  surplus(owner: string, atOnce: number): readonly RowCount[] {
    const counts = this.#sql.exec('SELECT actor, rows FROM audit_row_counts').toArray()
    const all = counts.map((row) => ({ actor: textOf(row, 'actor'), rows: numberOf(row, 'rows') }))
    const tooMany = (of: readonly RowCount[], max: number): readonly RowCount[] => {
      const rows = of.reduce((sum, count) => sum + count.rows, 0)
      return rows <= max ? [] : levelDown(of, Math.min(rows - max, atOnce))
    }
    const [own, others] = [
      all.filter(({ actor }) => actor === owner),
      all.filter(({ actor }) => actor !== owner),
    ]
    return [...tooMany(own, MAX_OWN_ROWS), ...tooMany(others, MAX_OTHERS_ROWS)]
  }
}

function tally(actors: readonly string[]): ReadonlyMap<string, number> {
  const tallied = new Map<string, number>()
  for (const actor of actors) tallied.set(actor, (tallied.get(actor) ?? 0) + 1)
  return tallied
}
