import type { HeldGrant } from '../sandbox/grants.ts'
import { type Sql, textOf } from '../sql.ts'

/** Grants that an account's index keeps; older ones still work by their ids. */
const MAX_SHARED = 256

/** Appended to the migrations of an account's store. */
export const SHARED_MIGRATIONS: readonly string[] = [
  `CREATE TABLE shared (
    grant_id TEXT PRIMARY KEY,
    added INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    held TEXT NOT NULL
  )`,
]

/**
 * An index of what others shared with an account. What counts is the grant in the sandbox's object: a row here is only the
 * way to find it, and is removed when it leads nowhere.
 */
export class SharedWithMe {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  add(held: HeldGrant, nowMs: number): void {
    this.#sql.exec('DELETE FROM shared WHERE expires_ms <= ?', nowMs)
    this.#sql.exec(
      `INSERT OR REPLACE INTO shared SELECT ?, COALESCE(MAX(added), 0) + 1, ?, ? FROM shared`,
      held.grant,
      held.expiresMs,
      JSON.stringify(held),
    )
    this.#sql.exec(
      'DELETE FROM shared WHERE grant_id NOT IN (SELECT grant_id FROM shared ORDER BY added DESC LIMIT ?)',
      MAX_SHARED,
    )
  }

  remove(grant: string): void {
    this.#sql.exec('DELETE FROM shared WHERE grant_id = ?', grant)
  }

  /** What has not expired, in the order it came. */
  list(nowMs: number): readonly HeldGrant[] {
    return this.#sql
      .exec('SELECT held FROM shared WHERE expires_ms > ? ORDER BY added', nowMs)
      .toArray()
      .map((row) => JSON.parse(textOf(row, 'held')) as HeldGrant)
  }
}
