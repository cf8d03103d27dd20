import { SandwireError } from '@sandwire/protocol'
import { numberOf, type Sql } from '../sql.ts'

export const ATTACH_BUDGET_MIGRATION = `CREATE TABLE attach_budget (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    tokens REAL NOT NULL,
    at_ms INTEGER NOT NULL
  )`

/** What was left of the budget, and when. */
interface Level {
  readonly tokens: number
  readonly atMs: number
}

/**
 * How often one account may attach, from everywhere together: as many as fit in a minute may come at once. What is left is
 * stored once it is less than half, so that a busy account gains nothing by waiting until its object is evicted, and a
 * quiet one writes nothing.
 */
export class AttachBudget {
  readonly #sql: Sql
  #level: Level | undefined

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Takes one; throws `too_many_attaches` when none is left. 0 a minute: no limit. */
  take(perMinute: number, nowMs: number): void {
    if (perMinute === 0) return
    const perMs = perMinute / 60_000
    const before = this.#read() ?? { tokens: perMinute, atMs: nowMs }
    const passedMs = Math.max(0, nowMs - before.atMs)
    const tokens = Math.min(perMinute, before.tokens + passedMs * perMs)
    if (tokens < 1) {
      // A clock that was set back would else keep them away until it is where it was.
      if (nowMs < before.atMs) this.#write({ tokens, atMs: nowMs }, true)
      const message = `Cannot attach more than ${perMinute} times a minute`
      throw new SandwireError('too_many_attaches', message, { retryAfterMs: (1 - tokens) / perMs })
    }
    this.#write({ tokens: tokens - 1, atMs: nowMs }, tokens - 1 < perMinute / 2)
  }

  #read(): Level | undefined {
    if (this.#level !== undefined) return this.#level
    const [row] = this.#sql.exec('SELECT tokens, at_ms FROM attach_budget').toArray()
    return row === undefined ? undefined : { tokens: numberOf(row, 'tokens'), atMs: numberOf(row, 'at_ms') }
  }

  #write(level: Level, isLow: boolean): void {
    this.#level = level
    if (isLow)
      this.#sql.exec('INSERT OR REPLACE INTO attach_budget VALUES (1, ?, ?)', level.tokens, level.atMs)
  }
}
