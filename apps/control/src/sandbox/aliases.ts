import { numberOf, type Row, textOf } from '../sql.ts'

/** For the end of the migrations. `given` counts, so that the oldest are known. */
export const ALIASES_MIGRATIONS: readonly string[] = [
  `CREATE TABLE aliases (
    account TEXT NOT NULL,
    alias TEXT NOT NULL,
    session TEXT NOT NULL,
    given INTEGER NOT NULL,
    PRIMARY KEY (account, alias)
  )`,
  'CREATE UNIQUE INDEX aliases_given ON aliases (given)',
  'CREATE INDEX aliases_of_account ON aliases (account, given)',
]

/** Names of one account, far more than it has terminals; the oldest makes way. */
const MAX_PER_ACCOUNT = 128
/** A name is forgotten when this many were given after it, to whomever: those of people who do not come back go in the end. */
const MAX_ALIASES = 4_096

/** Runs a query, or nothing while there is no sandbox. */
type Exec = (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

/**
 * Names that clients made up for sessions, each good for its own account alone. They lead to a session and allow nothing: who
 * uses one is asked for their right as if they had named the session.
 */
export class Aliases {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  find(account: string, alias: string): string | undefined {
    const [row] = this.#exec('SELECT session FROM aliases WHERE account = ? AND alias = ?', account, alias)
    return row === undefined ? undefined : textOf(row, 'session')
  }

  /** From now on the name means this session. */
  put(account: string, alias: string, session: string): void {
    const [row] = this.#exec('SELECT COALESCE(MAX(given), 0) + 1 AS next FROM aliases')
    const given = row === undefined ? 1 : numberOf(row, 'next')
    this.#exec('INSERT OR REPLACE INTO aliases VALUES (?, ?, ?, ?)', account, alias, session, given)
    this.#exec('DELETE FROM aliases WHERE given <= ?', given - MAX_ALIASES)
    this.#exec(
      `DELETE FROM aliases WHERE account = ? AND given <=
       (SELECT given FROM aliases WHERE account = ? ORDER BY given DESC LIMIT 1 OFFSET ?)`,
      account,
      account,
      MAX_PER_ACCOUNT,
    )
  }
}
