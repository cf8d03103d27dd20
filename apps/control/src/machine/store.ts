import type { Amounts } from '@sandwire/operator-settings'
import { numberOf, openSchema, type Row, type Schema, type Sql } from '../sql.ts'

const SCHEMA: Schema = {
  version: 1,
  statements: [
    `CREATE TABLE usage (
      account TEXT PRIMARY KEY,
      running INTEGER NOT NULL,
      memory_bytes INTEGER NOT NULL,
      milli_cpus INTEGER NOT NULL,
      pids INTEGER NOT NULL,
      sandboxes INTEGER NOT NULL,
      disk_bytes INTEGER NOT NULL,
      updated_ms INTEGER NOT NULL
    )`,
  ],
}

/** Name of the one machine object. */
export const MACHINE = 'machine'

/**
 * How long the running sandboxes of an account count after its last report. Accounts with running sandboxes report more often,
 * so this only ends reports that were not withdrawn.
 */
export const RUNNING_EXPIRES_MS = 15 * 60 * 1000

/** What each account uses, as it reported last. */
export class MachineStore {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
    openSchema(sql, SCHEMA)
  }

  set(account: string, usage: Amounts, nowMs: number): void {
    const { running = 0, memoryBytes = 0, milliCpus = 0, pids = 0, sandboxes = 0, diskBytes = 0 } = usage
    if (running === 0 && sandboxes === 0) this.#sql.exec('DELETE FROM usage WHERE account = ?', account)
    else
      this.#sql.exec(
        'INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        account,
        running,
        memoryBytes,
        milliCpus,
        pids,
        sandboxes,
        diskBytes,
        nowMs,
      )
  }

  /** What all accounts use, except one. */
  total(nowMs: number, except = ''): Amounts & { readonly accounts: number } {
    const current = nowMs - RUNNING_EXPIRES_MS
    const [row] = this.#sql
      .exec(
        `SELECT COUNT(*) AS accounts,
           COALESCE(SUM(CASE WHEN updated_ms > ?1 THEN running ELSE 0 END), 0) AS running,
           COALESCE(SUM(CASE WHEN updated_ms > ?1 THEN memory_bytes ELSE 0 END), 0) AS memory_bytes,
           COALESCE(SUM(CASE WHEN updated_ms > ?1 THEN milli_cpus ELSE 0 END), 0) AS milli_cpus,
           COALESCE(SUM(CASE WHEN updated_ms > ?1 THEN pids ELSE 0 END), 0) AS pids,
           COALESCE(SUM(sandboxes), 0) AS sandboxes,
           COALESCE(SUM(disk_bytes), 0) AS disk_bytes
         FROM usage WHERE account <> ?2`,
        current,
        except,
      )
      .toArray()
    return row === undefined ? { accounts: 0 } : toAmounts(row)
  }
}

function toAmounts(row: Row): Amounts & { readonly accounts: number } {
  return {
    accounts: numberOf(row, 'accounts'),
    running: numberOf(row, 'running'),
    memoryBytes: numberOf(row, 'memory_bytes'),
    milliCpus: numberOf(row, 'milli_cpus'),
    pids: numberOf(row, 'pids'),
    sandboxes: numberOf(row, 'sandboxes'),
    diskBytes: numberOf(row, 'disk_bytes'),
  }
}
