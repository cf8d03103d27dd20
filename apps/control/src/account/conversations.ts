import { SandwireError } from '@sandwire/protocol'
import type { ConversationView } from '../conversation/view.ts'
import { numberOf, type Sql, textOf } from '../sql.ts'

/** Created beside the tables of `AccountStore`, which stay as they are. `session_id` is how the account's client names it. */
const TABLE = `CREATE TABLE IF NOT EXISTS conversations (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT UNIQUE,
  view TEXT NOT NULL
)`

/** The account's conversations, as last reported. */
export class AccountConversations {
  readonly #sql: Sql
  readonly #max: number

  constructor(sql: Sql, max: number) {
    this.#sql = sql
    this.#max = max
    sql.exec(TABLE)
  }

  /** Adds a conversation; returns its id, or that of the one which the account's client names so. */
  claim(view: ConversationView): string {
    const known = view.sessionId === null ? undefined : this.find(view.sessionId)
    if (known !== undefined) return known
    const [row] = this.#sql.exec('SELECT COUNT(*) AS count FROM conversations').toArray()
    if (row !== undefined && numberOf(row, 'count') >= this.#max)
      throw new SandwireError(
        'too_many_runs',
        `Cannot have more than ${this.#max} conversations; delete one first`,
      )
    this.#sql.exec(
      'INSERT INTO conversations (id, session_id, view) VALUES (?, ?, ?)',
      view.id,
      view.sessionId,
      JSON.stringify(view),
    )
    return view.id
  }

  has(id: string): boolean {
    return this.#sql.exec('SELECT seq FROM conversations WHERE id = ?', id).toArray().length > 0
  }

  find(sessionId: string): string | undefined {
    const [row] = this.#sql.exec('SELECT id FROM conversations WHERE session_id = ?', sessionId).toArray()
    return row === undefined ? undefined : textOf(row, 'id')
  }

  /** Stores the state of a conversation; deleted ones are not added again. */
  report(view: ConversationView): void {
    this.#sql.exec('UPDATE conversations SET view = ? WHERE id = ?', JSON.stringify(view), view.id)
  }

  /** Newest first, those that were created before `before`. */
  list(limit: number, before: string | undefined): readonly ConversationView[] {
    return this.#sql
      .exec(
        `SELECT view FROM conversations
         WHERE seq < COALESCE((SELECT seq FROM conversations WHERE id = ?), ${Number.MAX_SAFE_INTEGER})
         ORDER BY seq DESC LIMIT ?`,
        before ?? '',
        limit,
      )
      .toArray()
      .map((row) => JSON.parse(textOf(row, 'view')) as ConversationView)
  }

  ids(): readonly string[] {
    return this.#sql
      .exec('SELECT id FROM conversations')
      .toArray()
      .map((row) => textOf(row, 'id'))
  }

  remove(id: string): void {
    this.#sql.exec('DELETE FROM conversations WHERE id = ?', id)
  }
}
