import { type AuditEntry, cleanEntry } from '../audit/entry.ts'
import { numberOf, type Row, textOf } from '../sql.ts'

export const AUDIT_OUTBOX_MIGRATION = `CREATE TABLE audit_outbox (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    entry TEXT NOT NULL,
    counts_drops INTEGER NOT NULL
  )`

/** Entries that wait for an account that does not answer; later ones are counted and left out. */
export const MAX_WAITING = 1_000
/** Entries sent at a time. */
export const BATCH = 100

/** Runs a query, or nothing while there is no sandbox. */
type Exec = (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

/** Entries in the order they were written, of which the last is numbered `last`. */
export interface Batch {
  readonly entries: readonly AuditEntry[]
  readonly last: number
}

/** What is to be told to the owner's audit, until it is known to be there. */
export class AuditOutbox {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  get isEmpty(): boolean {
    return this.#exec('SELECT seq FROM audit_outbox LIMIT 1').length === 0
  }

  /** Writes an entry down; false when too many wait. One that waits already is not written again. */
  add(entry: AuditEntry): boolean {
    if (this.#length >= MAX_WAITING) return false
    this.#insert(entry, false)
    return true
  }

  /** Counts an entry that is left out. `first` is written when no count is open; it stands behind all that waits. */
  countDrop(first: AuditEntry): void {
    const [row] = this.#exec('SELECT seq, entry FROM audit_outbox WHERE counts_drops = 1')
    if (row === undefined) return this.#insert({ ...first, dropped: 1 }, true)
    const known = JSON.parse(textOf(row, 'entry')) as AuditEntry
    const counted: AuditEntry = { ...known, dropped: (known.dropped ?? 0) + 1 }
    this.#exec(
      'UPDATE audit_outbox SET entry = ? WHERE seq = ?',
      JSON.stringify(counted),
      numberOf(row, 'seq'),
    )
  }

  /** The oldest entries; undefined when there are none. A count among them is closed: it may be told from now on. */
  head(): Batch | undefined {
    const rows = this.#exec('SELECT seq, entry FROM audit_outbox ORDER BY seq LIMIT ?', BATCH)
    const lastRow = rows.at(-1)
    if (lastRow === undefined) return undefined
    const last = numberOf(lastRow, 'seq')
    this.#exec('UPDATE audit_outbox SET counts_drops = 0 WHERE counts_drops = 1 AND seq <= ?', last)
    return { last, entries: rows.map((row) => JSON.parse(textOf(row, 'entry')) as AuditEntry) }
  }

  /** Forgets a batch that has arrived. */
  confirm({ last }: Batch): void {
    this.#exec('DELETE FROM audit_outbox WHERE seq <= ?', last)
  }

  /** By its ends: everything between them is there, since only the oldest are ever removed. */
  get #length(): number {
    const [row] = this.#exec(
      `SELECT COALESCE((SELECT MAX(seq) FROM audit_outbox) - (SELECT MIN(seq) FROM audit_outbox) + 1, 0) AS length`,
    )
    return row === undefined ? 0 : numberOf(row, 'length')
  }

  #insert(entry: AuditEntry, countsDrops: boolean): void {
    this.#exec(
      'INSERT INTO audit_outbox (id, entry, counts_drops) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING',
      entry.id,
      JSON.stringify(cleanEntry(entry)),
      countsDrops ? 1 : 0,
    )
  }
}
