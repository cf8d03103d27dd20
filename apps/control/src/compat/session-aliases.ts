import { numberOf, type Row, textOf } from '../sql.ts'

/** Schema of the aliases; `position` increases with every `put`, so the oldest are known. */
export const SESSION_ALIAS_SCHEMA: readonly string[] = [
  `CREATE TABLE session_aliases (
    account TEXT NOT NULL,
    alias TEXT NOT NULL,
    session TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (account, alias)
  )`,
  'CREATE UNIQUE INDEX session_aliases_position ON session_aliases (position)',
  'CREATE INDEX session_aliases_of_account ON session_aliases (account, position)',
]

/** Aliases of one account, far more than it has terminals; the oldest is dropped first. */
const MAX_PER_ACCOUNT = 128
/** Aliases of all accounts; the oldest is dropped first, so those of absent accounts expire eventually. */
const MAX_ALIASES = 4_096

/** Runs a query, or nothing while the sandbox does not exist. */
type Exec = (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

/**
 * Names that compat clients made up for sessions, each valid for its own account only. An alias identifies a session
 * and grants nothing: its use is authorized as if the session id had been given.
 */
export class SessionAliases {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  find(account: string, alias: string): string | undefined {
    const [row] = this.#exec(
      'SELECT session FROM session_aliases WHERE account = ? AND alias = ?',
      account,
      alias,
    )
    return row === undefined ? undefined : textOf(row, 'session')
  }

  /** Assigns the alias to this session. */
  put(account: string, alias: string, session: string): void {
    const [row] = this.#exec('SELECT COALESCE(MAX(position), 0) + 1 AS next FROM session_aliases')
    const position = row === undefined ? 1 : numberOf(row, 'next')
    this.#exec(
      'INSERT OR REPLACE INTO session_aliases VALUES (?, ?, ?, ?)',
      account,
      alias,
      session,
      position,
    )
    this.#exec('DELETE FROM session_aliases WHERE position <= ?', position - MAX_ALIASES)
    this.#exec(
      `DELETE FROM session_aliases WHERE account = ? AND position <=
       (SELECT position FROM session_aliases WHERE account = ? ORDER BY position DESC LIMIT 1 OFFSET ?)`,
      account,
      account,
      MAX_PER_ACCOUNT,
    )
  }
}
