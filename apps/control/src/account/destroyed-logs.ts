import { type Sql, textOf } from '../sql.ts'

export const DESTROYED_LOGS_SCHEMA: readonly string[] = [
  `CREATE TABLE destroyed_logs (
    sandbox TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    destroyed_ms INTEGER NOT NULL,
    log TEXT NOT NULL
  )`,
]

/** Sandboxes whose logs are kept, the last destroyed first. */
const MAX_LOGS = 20
/** How long a log is kept. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000
/** The last part of each log. */
export const MAX_DESTROYED_LOG_BYTES = 64 * 1024

/** The log of a sandbox that is about to be destroyed. */
export interface DestroyedLog {
  readonly sandbox: string
  readonly name: string
  readonly log: string
}

/** The last lines of sandboxes that were destroyed. */
export class DestroyedLogs {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Also removes what is old. A repeated destruction that finds no log keeps the first one. */
  add({ sandbox, name, log }: DestroyedLog, nowMs: number): void {
    const query = 'INSERT INTO destroyed_logs VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING'
    if (log !== '') this.#sql.exec(query, sandbox, name, nowMs, log)
    this.#sql.exec(
      `DELETE FROM destroyed_logs WHERE destroyed_ms <= ? OR sandbox NOT IN
       (SELECT sandbox FROM destroyed_logs ORDER BY destroyed_ms DESC, rowid DESC LIMIT ?)`,
      nowMs - KEPT_MS,
      MAX_LOGS,
    )
  }

  /** The log of the sandbox with this id, or of the last one that had this name. */
  find(idOrName: string, nowMs: number): string | undefined {
    const rows = this.#sql.exec(
      `SELECT log FROM destroyed_logs WHERE (sandbox = ? OR name = ?) AND destroyed_ms > ?
       ORDER BY destroyed_ms DESC, rowid DESC LIMIT 1`,
      idOrName,
      idOrName,
      nowMs - KEPT_MS,
    )
    return rows.toArray().map((row) => textOf(row, 'log'))[0]
  }

  clear(): void {
    this.#sql.exec('DELETE FROM destroyed_logs')
  }
}
