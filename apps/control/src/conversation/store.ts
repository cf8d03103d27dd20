import { Outbox, OUTBOX_SCHEMA } from '../outbox/outbox.ts'
import { hasSchema, numberOf, openSchema, type Schema, type Sql, textOf } from '../sql.ts'
import type { ConversationEntry } from './frames.ts'
import { MESSAGE_OUTBOX } from './message-outbox.ts'
import type { ConversationRecord } from './record.ts'
import { type ConversationSnapshot, NEW_CONVERSATION } from './snapshot.ts'

const SCHEMA: Schema = {
  version: 1,
  statements: [
    `CREATE TABLE conversation (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      record TEXT NOT NULL,
      state TEXT NOT NULL
    )`,
    'CREATE TABLE entries (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, frame TEXT NOT NULL)',
    ...OUTBOX_SCHEMA,
  ],
}

/** Characters of entries that a conversation keeps; the oldest are deleted. Less than the amount after which a socket is closed. */
const MAX_KEPT_CHARS = 8 * 1024 * 1024
/** Characters left after a deletion. The margin makes deletions rare, because each reads all entries. */
const KEPT_CHARS = 7 * 1024 * 1024
/** Characters of entries in one answer; at least one entry is returned. */
const MAX_RANGE_CHARS = 1024 * 1024
const MAX_TITLE_CHARS = 200

/** One conversation: its record, state and entries, and messages for the operator's API. */
export class ConversationStore {
  readonly #sql: Sql
  #hasTables: boolean
  /** Characters of all entries; undefined: not counted yet. */
  #keptChars: number | undefined
  readonly outbox: Outbox

  constructor(sql: Sql) {
    this.#sql = sql
    this.#hasTables = hasSchema(sql)
    if (this.#hasTables) openSchema(sql, SCHEMA)
    this.outbox = new Outbox((query, ...bindings) => sql.exec(query, ...bindings).toArray(), MESSAGE_OUTBOX)
  }

  read(): ConversationRecord | undefined {
    const row = this.#row()
    return row === undefined ? undefined : (JSON.parse(textOf(row, 'record')) as ConversationRecord)
  }

  readState(): ConversationSnapshot | undefined {
    const row = this.#row()
    if (row === undefined) return undefined
    // An earlier version of this server stored fewer fields.
    return { ...NEW_CONVERSATION, ...(JSON.parse(textOf(row, 'state')) as ConversationSnapshot) }
  }

  insert(record: ConversationRecord, state: ConversationSnapshot): void {
    if (!this.#hasTables) openSchema(this.#sql, SCHEMA)
    this.#hasTables = true
    const values = [JSON.stringify(record), JSON.stringify(state)] as const
    this.#sql.exec('INSERT OR IGNORE INTO conversation VALUES (1, ?, ?)', ...values)
  }

  update(changes: Partial<ConversationRecord>): ConversationRecord {
    const record = this.read()
    if (record === undefined) throw new Error('There is no conversation')
    const changed = { ...record, ...changes }
    this.#sql.exec('UPDATE conversation SET record = ?', JSON.stringify(changed))
    return changed
  }

  /** A person or the agent has said something. */
  touch(usedMs: number): void {
    const [first] = this.read()?.title === '' ? this.entries(0, 1) : []
    const isTitled = first?.frame.type === 'user_message'
    this.update({ usedMs, ...(isTitled ? { title: first.frame.content.slice(0, MAX_TITLE_CHARS) } : {}) })
  }

  writeState(state: ConversationSnapshot): void {
    this.#sql.exec('UPDATE conversation SET state = ?', JSON.stringify(state))
  }

  /** Characters of all entries. */
  get keptChars(): number {
    if (!this.#hasTables) return 0
    if (this.#keptChars === undefined) {
      const query = 'SELECT COALESCE(SUM(LENGTH(frame)), 0) AS chars FROM entries'
      const [row] = this.#sql.exec(query).toArray()
      this.#keptChars = row === undefined ? 0 : numberOf(row, 'chars')
    }
    return this.#keptChars
  }

  addEntry({ seq, atMs, frame }: ConversationEntry): void {
    const text = JSON.stringify(frame)
    const chars = this.keptChars + text.length
    this.#sql.exec('INSERT INTO entries VALUES (?, ?, ?)', seq, atMs, text)
    this.#keptChars = chars
    if (chars > MAX_KEPT_CHARS) this.#deleteOldest()
  }

  #deleteOldest(): void {
    this.#sql.exec(
      `DELETE FROM entries WHERE seq <= (
        SELECT MAX(seq) FROM (SELECT seq, SUM(LENGTH(frame)) OVER (ORDER BY seq DESC) AS chars FROM entries)
        WHERE chars > ?
      )`,
      KEPT_CHARS,
    )
    this.#keptChars = undefined
  }

  /** Entries after a number, as many as fit into one answer. */
  entries(after: number, limit: number): readonly ConversationEntry[] {
    if (!this.#hasTables) return []
    const query = 'SELECT seq, at_ms, frame FROM entries WHERE seq > ? ORDER BY seq LIMIT ?'
    const entries: ConversationEntry[] = []
    let chars = 0
    for (const row of this.#sql.exec(query, after, limit).toArray()) {
      const frame = textOf(row, 'frame')
      chars += frame.length
      if (entries.length > 0 && chars > MAX_RANGE_CHARS) break
      const parsed = JSON.parse(frame) as ConversationEntry['frame']
      entries.push({ seq: numberOf(row, 'seq'), atMs: numberOf(row, 'at_ms'), frame: parsed })
    }
    return entries
  }

  /** The text of a message of a person; undefined when its entry was deleted. */
  messageText(id: string): string | undefined {
    const query = `SELECT frame FROM entries WHERE frame LIKE '{"type":"user_message"%'
      AND json_extract(frame, '$.id') = ? ORDER BY seq DESC LIMIT 1`
    const [row] = this.#hasTables ? this.#sql.exec(query, id).toArray() : []
    const frame =
      row === undefined ? undefined : (JSON.parse(textOf(row, 'frame')) as ConversationEntry['frame'])
    return frame?.type === 'user_message' ? frame.content : undefined
  }

  /** To be called when the storage was deleted. */
  forget(): void {
    this.#hasTables = false
    this.#keptChars = undefined
  }

  #row() {
    return this.#hasTables ? this.#sql.exec('SELECT record, state FROM conversation').toArray()[0] : undefined
  }
}
