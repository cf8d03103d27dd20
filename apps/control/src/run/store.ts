import type { NumberedEvent } from '@sandwire/agent'
import type { Sql } from '../sql.ts'
import { hasSchema, numberOf, openSchema, type Schema, textOf } from '../sql.ts'
import type { RunRecord } from './record.ts'

const SCHEMA: Schema = {
  version: 1,
  statements: [
    'CREATE TABLE run (one INTEGER PRIMARY KEY CHECK (one = 1), record TEXT NOT NULL)',
    'CREATE TABLE events (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, event TEXT NOT NULL)',
    // A row of an object's database holds at most 2 MB.
    'CREATE TABLE diff_chunks (position INTEGER PRIMARY KEY, bytes BLOB NOT NULL)',
  ],
}

/** Characters of events in one answer; at least one event is returned. */
const MAX_RANGE_CHARS = 1024 * 1024

/** The record, events and result of one run. Its tables are created with the run, because any name reaches an object. */
export class RunStore {
  readonly #sql: Sql
  #hasTables: boolean
  /** The record as stored, and as JSON: every stream of events reads it again and again, and its task may be long. */
  #stored: { readonly record: RunRecord; readonly json: string } | undefined

  constructor(sql: Sql) {
    this.#sql = sql
    this.#hasTables = hasSchema(sql)
    if (this.#hasTables) openSchema(sql, SCHEMA)
  }

  read(): RunRecord | undefined {
    if (!this.#hasTables) return undefined
    if (this.#stored === undefined) {
      const [row] = this.#sql.exec('SELECT record FROM run').toArray()
      if (row === undefined) return undefined
      const json = textOf(row, 'record')
      this.#stored = { record: JSON.parse(json) as RunRecord, json }
    }
    return this.#stored.record
  }

  /** To be called when the storage was deleted. */
  forget(): void {
    this.#hasTables = false
    this.#stored = undefined
  }

  insert(record: RunRecord): void {
    if (!this.#hasTables) openSchema(this.#sql, SCHEMA)
    this.#hasTables = true
    this.#sql.exec('INSERT OR IGNORE INTO run VALUES (1, ?)', JSON.stringify(record))
  }

  /** Changes fields of the record. */
  update(changes: Partial<RunRecord>): RunRecord {
    const record = this.read()
    if (record === undefined) throw new Error('There is no run')
    const changed = { ...record, ...changes }
    const json = JSON.stringify(changed)
    if (json === this.#stored?.json) return record
    this.#sql.exec('UPDATE run SET record = ?', json)
    this.#stored = { record: changed, json }
    return changed
  }

  /** Adds events; those that are known stay as they are. */
  addEvents(events: readonly NumberedEvent[]): void {
    for (const { seq, atMs, event } of events)
      this.#sql.exec('INSERT OR IGNORE INTO events VALUES (?, ?, ?)', seq, atMs, JSON.stringify(event))
  }

  /** Events after a sequence number, as many as fit into one answer. */
  events(after: number, limit: number): readonly NumberedEvent[] {
    if (!this.#hasTables) return []
    const rows = this.#sql
      .exec(
        `SELECT seq, at_ms, event FROM
           (SELECT *, SUM(LENGTH(event)) OVER (ORDER BY seq) AS total FROM
             (SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?))
         WHERE total <= ? OR seq = (SELECT MIN(seq) FROM events WHERE seq > ?)
         ORDER BY seq`,
        after,
        limit,
        MAX_RANGE_CHARS,
        after,
      )
      .toArray()
    return rows.map((row) => ({
      seq: numberOf(row, 'seq'),
      atMs: numberOf(row, 'at_ms'),
      event: JSON.parse(textOf(row, 'event')) as NumberedEvent['event'],
    }))
  }

  /** What the run keeps, besides a diff in the store of versions. */
  get sizeBytes(): number {
    const [row] = this.#sql.exec('SELECT COALESCE(SUM(LENGTH(event)), 0) AS bytes FROM events').toArray()
    const record = this.read()
    return (row === undefined ? 0 : numberOf(row, 'bytes')) + JSON.stringify(record ?? null).length
  }

  /** Sequence number of the last event; 0 without any. */
  get lastSeq(): number {
    if (!this.#hasTables) return 0
    const [row] = this.#sql.exec('SELECT COALESCE(MAX(seq), 0) AS last FROM events').toArray()
    return row === undefined ? 0 : numberOf(row, 'last')
  }

  /** True when the last event of the run is stored. */
  get isComplete(): boolean {
    const [last] = this.events(this.lastSeq - 1, 1)
    return last?.event.type === 'complete'
  }

  /** Removes the parts of a stored file between two positions. */
  clearDiff(from: number, to: number): void {
    this.#sql.exec('DELETE FROM diff_chunks WHERE position >= ? AND position < ?', from, to)
  }

  addDiffChunk(position: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#sql.exec('INSERT OR REPLACE INTO diff_chunks VALUES (?, ?)', position, bytes)
  }

  /** Part of the diff that begins at or after this position. */
  diffChunk(position: number): { readonly position: number; readonly bytes: Uint8Array } | undefined {
    const [row] = this.#sql
      .exec('SELECT position, bytes FROM diff_chunks WHERE position >= ? ORDER BY position LIMIT 1', position)
      .toArray()
    const bytes = row?.['bytes']
    if (row === undefined || typeof bytes !== 'object' || bytes === null) return undefined
    return { position: numberOf(row, 'position'), bytes: new Uint8Array(bytes) }
  }
}
