import type { Ceilings } from '../ceilings/ceilings.ts'
import { ceilingError, checkCeilings } from '../ceilings/check-ceilings.ts'
import { numberOf, type Sql, textOf } from '../sql.ts'

/**
 * Created beside the tables of `AccountStore`, which stay as they are. A sandbox and its forks share content, which is stored
 * once: `lineage` is the sandbox that made it.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS stored_bytes (
  source TEXT NOT NULL,
  lineage TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (source, lineage)
)`

/** Bytes that a sandbox needs in the store, by the sandbox that made them. */
export type BytesByLineage = Readonly<Record<string, number>>

/** What versions, ended runs and conversations of the account take, against its ceiling. */
export class StoredBytes {
  readonly #sql: Sql
  readonly #ceilings: Ceilings

  constructor(sql: Sql, ceilings: Ceilings) {
    this.#sql = sql
    this.#ceilings = ceilings
    sql.exec(TABLE)
  }

  get total(): number {
    const query = `SELECT COALESCE(SUM(bytes), 0) AS bytes
      FROM (SELECT MAX(bytes) AS bytes FROM stored_bytes GROUP BY lineage)`
    const [row] = this.#sql.exec(query).toArray()
    return row === undefined ? 0 : numberOf(row, 'bytes')
  }

  /** Replaces what a sandbox, a run or a conversation has stored; unchanged amounts are not written. */
  set(source: string, stored: BytesByLineage): void {
    const rows = this.#sql.exec('SELECT lineage, bytes FROM stored_bytes WHERE source = ?', source).toArray()
    const known = new Map(rows.map((row) => [textOf(row, 'lineage'), numberOf(row, 'bytes')]))
    for (const [lineage, bytes] of Object.entries(stored)) {
      if (known.get(lineage) !== bytes)
        this.#sql.exec('INSERT OR REPLACE INTO stored_bytes VALUES (?, ?, ?)', source, lineage, bytes)
      known.delete(lineage)
    }
    for (const lineage of known.keys())
      this.#sql.exec('DELETE FROM stored_bytes WHERE source = ? AND lineage = ?', source, lineage)
  }

  remove(source: string): void {
    this.#sql.exec('DELETE FROM stored_bytes WHERE source = ?', source)
  }

  /** Throws `ceiling_exceeded` when there is no room for these bytes. */
  check(bytes: number, action: string): void {
    const usage = { account: { storedBytes: this.total } }
    const violation = checkCeilings({ adds: { storedBytes: bytes } }, usage, this.#ceilings)
    if (violation !== undefined) throw ceilingError(violation, action)
  }

  /** Counts bytes that a sandbox is about to store, until it reports what it has; throws at the ceiling. */
  admit(sandbox: string, bytes: number): void {
    this.check(bytes, 'save the files')
    this.#sql.exec(
      `INSERT INTO stored_bytes VALUES (?1, ?1, ?2)
       ON CONFLICT (source, lineage) DO UPDATE SET bytes = bytes + excluded.bytes`,
      sandbox,
      bytes,
    )
  }
}
