import type { RunSettings } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { Buckets } from '../http/buckets.ts'
import type { RunView } from '../run/view.ts'
import { numberOf, type Sql, textOf } from '../sql.ts'

/**
 * Created beside the tables of `AccountStore`, which stay as they are: an account from before there were runs gets this one.
 * `seq` is the order of creation, in which queued runs start.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS runs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  key TEXT UNIQUE,
  request_hash TEXT NOT NULL,
  state TEXT NOT NULL,
  view TEXT NOT NULL
)`

/** What a request to create a run is recognized by when it is repeated. */
export interface RunClaim {
  /** `Idempotency-Key`; absent: the request cannot be repeated. */
  readonly key?: string
  /** SHA-256 of the request. */
  readonly requestHash: string
}

/** The account's runs, and which of them may work. */
export class AccountRuns {
  readonly #sql: Sql
  readonly #settings: RunSettings
  readonly #rate: Buckets

  constructor(sql: Sql, settings: RunSettings) {
    this.#sql = sql
    this.#settings = settings
    const { perMinute } = settings
    this.#rate = new Buckets({ perSecond: perMinute / 60, burst: perMinute, max: 1 })
    sql.exec(TABLE)
  }

  /**
   * Adds a run. Returns the id of the earlier run for a repeated key; throws `conflict` when that was another request, and
   * `too_many_runs` or `rate_limited` at the limits.
   */
  claim(view: RunView, { key, requestHash }: RunClaim, nowMs: number): string {
    if (key !== undefined) {
      const [row] = this.#sql.exec('SELECT id, request_hash FROM runs WHERE key = ?', key).toArray()
      if (row !== undefined) {
        if (textOf(row, 'request_hash') === requestHash) return textOf(row, 'id')
        throw new SandwireError('conflict', 'The idempotency key was used for another run')
      }
    }
    const { queued } = this.#settings
    if (this.#count("state = 'queued'") >= queued)
      throw new SandwireError('too_many_runs', `Cannot queue more than ${queued} runs`)
    if (this.#settings.perMinute > 0 && !this.#rate.take('runs', nowMs))
      throw new SandwireError('rate_limited', 'Too many runs', {
        retryAfterMs: this.#rate.waitMs('runs', nowMs),
      })
    this.#sql.exec(
      'INSERT INTO runs (id, key, request_hash, state, view) VALUES (?, ?, ?, ?, ?)',
      view.id,
      key ?? null,
      requestHash,
      view.state,
      JSON.stringify(view),
    )
    return view.id
  }

  /** Lets a queued run start, the oldest first; false when it has to wait. Throws `run_not_found` for a deleted run. */
  admit(id: string): boolean {
    const [row] = this.#sql.exec('SELECT seq, state FROM runs WHERE id = ?', id).toArray()
    if (row === undefined) throw new SandwireError('run_not_found', 'No run has this id')
    if (textOf(row, 'state') !== 'queued') return true
    const older = this.#count("state = 'queued' AND seq < ?", numberOf(row, 'seq'))
    if (this.#active + older >= this.#settings.concurrent) return false
    this.#sql.exec("UPDATE runs SET state = 'preparing' WHERE id = ?", id)
    return true
  }

  /** Stores the state of a run; deleted runs are not added again. */
  report(view: RunView): void {
    this.#sql.exec(
      'UPDATE runs SET state = ?, view = ? WHERE id = ?',
      view.state,
      JSON.stringify(view),
      view.id,
    )
  }

  /** Queued runs that may start now. */
  startable(): readonly string[] {
    const free = this.#settings.concurrent - this.#active
    if (free <= 0) return []
    return this.#sql
      .exec("SELECT id FROM runs WHERE state = 'queued' ORDER BY seq LIMIT ?", free)
      .toArray()
      .map((row) => textOf(row, 'id'))
  }

  /** Runs, newest first, that were created before `before`, as a JSON array of `RunView`. */
  list(limit: number, before: string | undefined): string {
    const views = this.#sql
      .exec(
        `SELECT view FROM runs WHERE seq < COALESCE((SELECT seq FROM runs WHERE id = ?), ${Number.MAX_SAFE_INTEGER})
         ORDER BY seq DESC LIMIT ?`,
        before ?? '',
        limit,
      )
      .toArray()
      .map((row) => textOf(row, 'view'))
    return `[${views.join(',')}]`
  }

  /** Ended runs beyond the number that is kept, the oldest. */
  outdated(): readonly string[] {
    return this.#sql
      .exec(
        "SELECT id FROM runs WHERE state = 'ended' ORDER BY seq DESC LIMIT -1 OFFSET ?",
        this.#settings.kept,
      )
      .toArray()
      .map((row) => textOf(row, 'id'))
  }

  ids(): readonly string[] {
    return this.#sql
      .exec('SELECT id FROM runs')
      .toArray()
      .map((row) => textOf(row, 'id'))
  }

  remove(id: string): void {
    this.#sql.exec('DELETE FROM runs WHERE id = ?', id)
  }

  get #active(): number {
    return this.#count("state NOT IN ('queued', 'ended')")
  }

  #count(where: string, ...bindings: number[]): number {
    const [row] = this.#sql.exec(`SELECT COUNT(*) AS count FROM runs WHERE ${where}`, ...bindings).toArray()
    return row === undefined ? 0 : numberOf(row, 'count')
  }
}
