import { SandwireError } from '@sandwire/protocol'
import type { HeldGrant } from '../sandbox/grants.ts'
import { type Sql, textOf } from '../sql.ts'

/** How somebody came to hold a grant: they exchanged a link themselves, or it was given to them unasked. */
export type Arrival = 'redeemed' | 'pushed'

/** Live grants of one account. Counted apart: whatever strangers push, a link of one's own still works. */
const MAX_SHARED: Readonly<Record<Arrival, number>> = { redeemed: 256, pushed: 64 }
/** A row is written before its grant is, so one that leads nowhere may yet. */
const UNBORN_MS = 60_000

/** Appended to the migrations of an account's store. */
export const SHARED_MIGRATIONS: readonly string[] = [
  `CREATE TABLE shared (
    grant_id TEXT PRIMARY KEY,
    added INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    held TEXT NOT NULL
  )`,
]
export const SHARED_ARRIVAL_MIGRATIONS: readonly string[] = [
  "ALTER TABLE shared ADD COLUMN arrival TEXT NOT NULL DEFAULT 'redeemed'",
  'ALTER TABLE shared ADD COLUMN since_ms INTEGER NOT NULL DEFAULT 0',
]

function tooMany(arrival: Arrival): SandwireError {
  return new SandwireError(
    'too_many_grants',
    arrival === 'pushed'
      ? 'Cannot share with this account: too much was given to it unasked; a link works'
      : `Cannot join: ${MAX_SHARED.redeemed} things are shared with you; leave one first`,
  )
}

/**
 * An index of what others shared with an account. What counts is the grant in the sandbox's object: a row here is only the
 * way to find it, and is removed when it leads nowhere. No row makes way for another: by these rows the sandboxes are found
 * that have to hear of a sign-out or of the end of the account.
 */
export class SharedWithMe {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Throws `too_many_grants` when there are as many as there may be. */
  add(held: HeldGrant, arrival: Arrival, nowMs: number): void {
    this.#sql.exec('DELETE FROM shared WHERE expires_ms <= ?', nowMs)
    const others = this.#sql
      .exec('SELECT grant_id FROM shared WHERE arrival = ? AND grant_id <> ?', arrival, held.grant)
      .toArray().length
    if (others >= MAX_SHARED[arrival]) throw tooMany(arrival)
    this.#sql.exec(
      `INSERT OR REPLACE INTO shared (grant_id, added, expires_ms, held, arrival, since_ms)
       SELECT ?, COALESCE(MAX(added), 0) + 1, ?, ?, ?, ? FROM shared`,
      held.grant,
      held.expiresMs,
      JSON.stringify(held),
      arrival,
      nowMs,
    )
  }

  remove(grant: string): void {
    this.#sql.exec('DELETE FROM shared WHERE grant_id = ?', grant)
  }

  /** Removes a row that was found to lead nowhere. */
  forget(grant: string, nowMs: number): void {
    this.#sql.exec('DELETE FROM shared WHERE grant_id = ? AND since_ms <= ?', grant, nowMs - UNBORN_MS)
  }

  /** What has not expired, in the order it came. */
  list(nowMs: number): readonly HeldGrant[] {
    return this.#sql
      .exec('SELECT held FROM shared WHERE expires_ms > ? ORDER BY added', nowMs)
      .toArray()
      .map((row) => JSON.parse(textOf(row, 'held')) as HeldGrant)
  }
}
