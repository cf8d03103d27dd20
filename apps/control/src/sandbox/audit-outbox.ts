import { type AuditEntry, cleanEntry } from '../audit/entry.ts'
import { numberOf, type Row, textOf } from '../sql.ts'

export const AUDIT_OUTBOX_MIGRATION = `CREATE TABLE audit_outbox (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    entry TEXT NOT NULL,
    counts_drops INTEGER NOT NULL
  )`

/** Entries that were left out and not told yet, by whose they are. */
export const AUDIT_DROPS_MIGRATION = `CREATE TABLE audit_drops (
    actor TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    dropped INTEGER NOT NULL,
    since_ms INTEGER NOT NULL
  )`

/** Entries that wait for an account that does not answer; later ones are counted and left out. */
export const MAX_WAITING = 1_000
/** Of them at most so many while others than the owner are the cause: there is always room for the owner's. */
const MAX_WAITING_OF_OTHERS = MAX_WAITING / 2
/** How long what is left out is counted before the count is told: it would be as many rows otherwise. */
export const DROPS_GATHER_MS = 60_000
/** Entries sent at a time. */
export const BATCH = 100

/** Runs a query, or nothing while there is no sandbox. */
type Exec = (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

/** Entries in the order they were written, of which the last is numbered `last`. */
export interface Batch {
  readonly entries: readonly AuditEntry[]
  readonly last: number
}

/** Entries of one person that were left out. */
export type Drops = Pick<AuditEntry, 'actor' | 'actorName'> & { readonly dropped: number }

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
  add(entry: AuditEntry, isOwner: boolean): boolean {
    if (this.#length >= (isOwner ? MAX_WAITING : MAX_WAITING_OF_OTHERS)) return false
    this.#insert(entry)
    return true
  }

  /** Counts an entry that is left out. */
  countDrop({ actor, actorName }: Pick<AuditEntry, 'actor' | 'actorName'>, nowMs: number): void {
    this.#exec(
      `INSERT INTO audit_drops VALUES (?, ?, 1, ?) ON CONFLICT (actor) DO UPDATE SET dropped = dropped + 1`,
      actor,
      actorName,
      nowMs,
    )
  }

  /** When the next count is to be told; undefined: nothing was left out. */
  get nextCountMs(): number | undefined {
    const [row] = this.#exec('SELECT since_ms FROM audit_drops ORDER BY since_ms LIMIT 1')
    return row === undefined ? undefined : numberOf(row, 'since_ms') + DROPS_GATHER_MS
  }

  /** Makes entries of the counts that were begun by then, which do not change from now on. */
  closeCounts(untilMs: number, entryOf: (drops: Drops) => AuditEntry): void {
    for (const row of this.#exec('SELECT * FROM audit_drops WHERE since_ms <= ?', untilMs)) {
      const actor = textOf(row, 'actor')
      this.#insert(entryOf({ actor, actorName: textOf(row, 'name'), dropped: numberOf(row, 'dropped') }))
      this.#exec('DELETE FROM audit_drops WHERE actor = ?', actor)
    }
  }

  /** The oldest entries; undefined when there are none. */
  head(): Batch | undefined {
    const rows = this.#exec('SELECT seq, entry FROM audit_outbox ORDER BY seq LIMIT ?', BATCH)
    const lastRow = rows.at(-1)
    if (lastRow === undefined) return undefined
    return {
      last: numberOf(lastRow, 'seq'),
      entries: rows.map((row) => JSON.parse(textOf(row, 'entry')) as AuditEntry),
    }
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

  #insert(entry: AuditEntry): void {
    this.#exec(
      'INSERT INTO audit_outbox (id, entry, counts_drops) VALUES (?, ?, 0) ON CONFLICT (id) DO NOTHING',
      entry.id,
      JSON.stringify(cleanEntry(entry)),
    )
  }
}
