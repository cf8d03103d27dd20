import { type AuditEntry, cleanEntry, isRefusal } from '../audit/entry.ts'
import type { LateRefusal } from '../sandbox/late-refusals.ts'
import { type Action, type AuditClass, classOf } from '../audit/actions.ts'
import { numberOf, type Row, type Sql, textOf } from '../sql.ts'
import { ROW_COUNTS_SCHEMA, RowCounts, type RowGroup } from './audit-row-counts.ts'

/** How long a row is stored. */
export const AUDIT_LIFE_MS = 90 * 24 * 60 * 60 * 1000
/** Rows deleted at a time, a few times what one delivery adds: no request waits for a long cleanup. */
export const PRUNED_AT_ONCE = 500
/** Rows that a page with a filter examines: a few milliseconds, in which nothing else runs. */
const MAX_EXAMINED_ROWS = 5_000

/** Actions that sandboxd can refuse after control allowed them; the ids of their rows end with the action. */
const LATE_ACTIONS: readonly Action[] = ['session.start', 'session.join', 'exec']

/** Most rows of a class by the owner, and again by all other actors together. A class never evicts rows of another. */
export const MAX_ROWS: Readonly<Record<AuditClass, number>> = {
  security: 20_000,
  activity: 50_000,
  gap: 1_000,
}
/** Actors with rows of their own that summarize evicted rows; evicted rows of further actors share one. */
export const MAX_SUMMARIES = 1_000

export const AUDIT_SCHEMA: readonly string[] = [
  // `seq` is the order of arrival; pages are in the order of `at_ms`.
  `CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    class TEXT NOT NULL,
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
    dropped INTEGER,
    dropped_since_ms INTEGER
  )`,
  'CREATE INDEX audit_by_time ON audit (at_ms, seq)',
  'CREATE INDEX audit_by_sandbox ON audit (sandbox, at_ms, seq)',
  'CREATE INDEX audit_by_group ON audit (class, actor, action, outcome, seq)',
  ...ROW_COUNTS_SCHEMA,
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
  readonly droppedSinceMs: number | null
}

export interface AuditPage {
  /** Newest first. */
  readonly rows: readonly AuditRow[]
  readonly next: string | null
}

function optionalText(row: Row, column: string): string | null {
  return row[column] === null ? null : textOf(row, column)
}

function optionalNumber(row: Row, column: string): number | null {
  return row[column] === null ? null : numberOf(row, column)
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
    dropped: optionalNumber(row, 'dropped'),
    droppedSinceMs: optionalNumber(row, 'dropped_since_ms'),
  }
}

function groupOf(row: Row): RowGroup {
  return {
    class: textOf(row, 'class') as RowGroup['class'],
    actor: textOf(row, 'actor'),
    action: textOf(row, 'action'),
    outcome: textOf(row, 'outcome'),
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
    this.#added(
      entries.map(cleanEntry).flatMap((entry) => this.#insert(entry)),
      owner,
      nowMs,
    )
  }

  /**
   * Adds refusals that a sandbox reports for requests that control allowed: a second row beside the first, which says who did
   * what. Rows are never changed, so that a sandbox can hide nothing; refusals of requests without a row are ignored.
   */
  addRefusals(sandbox: string, refusals: readonly LateRefusal[], owner: string, nowMs: number): void {
    this.#added(
      refusals.flatMap((refusal) => this.#copyAsRefused(sandbox, refusal, nowMs)),
      owner,
      nowMs,
    )
  }

  /** Updates the counts and enforces the limits after rows of these groups were added. */
  #added(groups: readonly RowGroup[], owner: string, nowMs: number): void {
    this.#rowCounts.add(groups)
    this.prune(nowMs)
    for (const { rows, ...group } of this.#rowCounts.surplus(owner, MAX_ROWS, PRUNED_AT_ONCE))
      this.#evict(group, rows)
  }

  /** Deletes the oldest rows of a group, and adds them to the row that summarizes what the actor lost in this class. */
  #evict(group: RowGroup, count: number): void {
    const evicted = this.#delete(
      `SELECT seq FROM audit WHERE class = ? AND actor = ? AND action = ? AND outcome = ? ORDER BY seq LIMIT ?`,
      group.class,
      group.actor,
      group.action,
      group.outcome,
      count,
    )
    const [first] = evicted
    if (first === undefined) return
    const sinceMs = evicted.map((row) => optionalNumber(row, 'dropped_since_ms') ?? numberOf(row, 'at_ms'))
    const dropped = evicted.reduce((sum, row) => sum + (optionalNumber(row, 'dropped') ?? 1), 0)
    const own = `evicted ${group.class} ${group.actor}`
    const isShared = !this.#has(own) && this.#rowCounts.total('summary') >= MAX_SUMMARIES
    const id = isShared ? `evicted ${group.class}` : own
    const isNew = !this.#has(id)
    const actor = isShared ? '' : group.actor
    this.#sql.exec(
      `INSERT INTO audit (id, class, at_ms, actor, actor_name, action, address, outcome, request_id, dropped, dropped_since_ms)
       VALUES (?, 'summary', ?, ?, ?, 'audit.dropped', '', 'allowed', '', ?, ?)
       ON CONFLICT (id) DO UPDATE SET
         dropped = dropped + excluded.dropped,
         at_ms = MAX(at_ms, excluded.at_ms),
         dropped_since_ms = MIN(dropped_since_ms, excluded.dropped_since_ms)`,
      id,
      Math.max(...evicted.map((row) => numberOf(row, 'at_ms'))),
      actor,
      isShared ? '' : textOf(first, 'actor_name'),
      dropped,
      Math.min(...sinceMs),
    )
    if (isNew) this.#rowCounts.add([{ class: 'summary', actor, action: 'audit.dropped', outcome: 'allowed' }])
  }

  #has(id: string): boolean {
    return this.#sql.exec('SELECT seq FROM audit WHERE id = ?', id).toArray().length > 0
  }

  /** Returns the group of the row that was added, if any. */
  #copyAsRefused(sandbox: string, { requestId, code }: LateRefusal, nowMs: number): readonly RowGroup[] {
    const same =
      'class, actor, actor_name, action, sandbox, sandbox_name, session, address, template, command, login'
    return this.#sql
      .exec(
        `INSERT INTO audit (id, at_ms, outcome, code, request_id, grant_id, account, ${same})
         SELECT id || '.late', ?, ?, ?, request_id, grant_id, account, ${same} FROM audit
         WHERE id IN (?, ?, ?) AND sandbox = ? AND outcome = 'allowed' AND code IS NULL
         ON CONFLICT (id) DO NOTHING RETURNING class, actor, action, outcome`,
        nowMs,
        isRefusal(code) ? 'refused' : 'allowed',
        code,
        ...LATE_ACTIONS.map((action) => `${requestId}.${action}`),
        sandbox,
      )
      .toArray()
      .map(groupOf)
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

  /** A page of the newest rows. With a filter it examines a bounded number of rows, so it can be short and have a `next`. */
  page(query: AuditQuery, nowMs: number): AuditPage {
    const { sandbox, action, sinceMs = 0, before, limit } = query
    const [beforeMs = '', beforeSeq = ''] = before?.split('-') ?? []
    const isFiltered = sandbox !== undefined || action !== undefined
    const range = `at_ms >= ? ${before === undefined ? '' : 'AND (at_ms, seq) < (?, ?)'}`
    const order = 'ORDER BY at_ms DESC, seq DESC LIMIT ?'
    const bounds = [
      Math.max(sinceMs, nowMs - AUDIT_LIFE_MS + 1),
      ...(before === undefined ? [] : [Number(beforeMs), Number(beforeSeq)]),
    ]
    const oldest = `SELECT at_ms, seq FROM audit WHERE ${range} ${order} OFFSET ?`
    const [lastExamined] = isFiltered
      ? this.#sql.exec(oldest, ...bounds, 1, MAX_EXAMINED_ROWS - 1).toArray()
      : []
    const found = this.#sql
      .exec(
        `SELECT * FROM audit WHERE ${range}
         ${lastExamined === undefined ? '' : 'AND (at_ms, seq) >= (?, ?)'}
         ${sandbox === undefined ? '' : "AND (sandbox = ? OR sandbox_name = ? OR class = 'summary')"}
         ${action === undefined ? '' : 'AND action = ?'} ${order}`,
        ...bounds,
        ...(lastExamined === undefined
          ? []
          : [numberOf(lastExamined, 'at_ms'), numberOf(lastExamined, 'seq')]),
        ...(sandbox === undefined ? [] : [sandbox, sandbox]),
        ...(action === undefined ? [] : [action]),
        limit + 1,
      )
      .toArray()
    const shown = found.slice(0, limit)
    const last = found.length > limit ? shown.at(-1) : lastExamined
    return {
      rows: shown.map(toAuditRow),
      next: last === undefined ? null : `${numberOf(last, 'at_ms')}-${numberOf(last, 'seq')}`,
    }
  }

  /** Deletes the rows that a query selects, and returns them. */
  #delete(query: string, ...bindings: (string | number)[]): readonly Row[] {
    const columns = 'class, actor, actor_name, action, outcome, at_ms, dropped, dropped_since_ms'
    const gone = this.#sql
      .exec(`DELETE FROM audit WHERE seq IN (${query}) RETURNING ${columns}`, ...bindings)
      .toArray()
    this.#rowCounts.remove(gone.map(groupOf))
    return gone
  }

  /** Returns the group of the row; none when a row with this id exists. */
  #insert(entry: AuditEntry): readonly RowGroup[] {
    const rowClass = classOf(entry.action, entry.code)
    const inserted = this.#sql.exec(
      `INSERT INTO audit (id, class, at_ms, actor, actor_name, action, sandbox, sandbox_name, session, address, outcome,
         code, template, command, login, request_id, dropped, dropped_since_ms, grant_id, account)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING seq`,
      entry.id,
      rowClass,
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
      entry.droppedSinceMs ?? null,
      entry.grant ?? null,
      entry.account ?? null,
    )
    const { actor, action, outcome } = entry
    return inserted.toArray().map(() => ({ class: rowClass, actor, action, outcome }))
  }
}
