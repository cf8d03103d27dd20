import { isIssuedBefore } from '../auth/identity.ts'
import { numberOf, type Row, type Sql, textOf } from '../sql.ts'

/** Appended to the migrations of an account's store. */
export const FAREWELL_MIGRATIONS: readonly string[] = [
  `CREATE TABLE farewells (
    number INTEGER PRIMARY KEY,
    sandbox TEXT NOT NULL,
    what TEXT NOT NULL,
    tries INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,
    UNIQUE (sandbox, what)
  )`,
  'CREATE TABLE ended_tokens (login TEXT PRIMARY KEY, until_ms INTEGER NOT NULL)',
  'CREATE TABLE closure (one INTEGER PRIMARY KEY CHECK (one = 1), deleted_ms INTEGER NOT NULL)',
]

/** For the end of the migrations. What ended before counts as ended when its token does. */
export const ENDED_MIGRATIONS: readonly string[] = [
  'ALTER TABLE ended_tokens ADD COLUMN ended_ms INTEGER NOT NULL DEFAULT 0',
  'UPDATE ended_tokens SET ended_ms = until_ms',
]

/** For the end of the migrations: when the newest of the ended tokens ended that are not known one by one any more. */
export const FORGOTTEN_MIGRATION = `CREATE TABLE forgotten_tokens (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    ended_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL
  )`

const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 60_000
/** Sign-ins by token that are remembered one by one as ended; past it, whatever is as old as the oldest is refused. */
const MAX_ENDED_TOKENS = 1_000
/** How long at least: other tokens of the sign-in may live longer than the one it was ended with. */
const ENDED_TOKEN_MS = 30 * 24 * 60 * 60 * 1000
/** How far an issuer's clock may be ahead of ours. */
const SKEW_MS = 60_000
/** How long tokens that do not say when they were issued are refused after a deletion. */
const UNDATED_MS = 24 * 60 * 60 * 1000

/** What a sandbox is told. */
export type Word =
  /** A sign-in of the account has ended. */
  | { readonly is: 'login'; readonly login: string; readonly endedMs: number }
  /** What any token of a person opened ends, and they may open it again. */
  | { readonly is: 'tokens'; readonly login: string }
  /** The account is gone, and held something here. */
  | { readonly is: 'leave'; readonly account: string }
  /** The account is gone, and this was its own. */
  | { readonly is: 'destroy'; readonly account: string }

/** Something that a sandbox has not been told yet. */
export interface Farewell {
  readonly number: number
  readonly sandbox: string
  readonly word: Word
  readonly tries: number
}

/** The token that somebody signs out with. */
export interface EndedToken {
  /** Names its sign-in, or itself. */
  readonly token: string
  readonly issuedMs?: number
  readonly expiresMs: number
}

/** A credential, as far as it matters whether it came before the end. */
export interface Dated {
  readonly login: string
  readonly issuedMs?: number
}

function toFarewell(row: Row): Farewell {
  return {
    number: numberOf(row, 'number'),
    sandbox: textOf(row, 'sandbox'),
    word: JSON.parse(textOf(row, 'what')) as Word,
    tries: numberOf(row, 'tries'),
  }
}

/** What ended in an account, and which sandboxes have to hear of it. Written in the moment it ends, kept until they have. */
export class Farewells {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Says something to sandboxes, each once; what was said before and not heard is said at once again. */
  say(sandboxes: Iterable<string>, word: Word, nowMs: number): void {
    for (const sandbox of new Set(sandboxes))
      this.#sql.exec(
        `INSERT INTO farewells (sandbox, what, tries, next_ms) VALUES (?, ?, 0, ?)
         ON CONFLICT (sandbox, what) DO UPDATE SET tries = 0, next_ms = excluded.next_ms`,
        sandbox,
        JSON.stringify(word),
        nowMs,
      )
  }

  /** What is to be said now. A clock that was set back delays nothing for longer than the longest wait. */
  due(nowMs: number): readonly Farewell[] {
    return this.#sql
      .exec(
        'SELECT * FROM farewells WHERE next_ms <= ? OR next_ms > ? ORDER BY number',
        nowMs,
        nowMs + MAX_RETRY_MS,
      )
      .toArray()
      .map(toFarewell)
  }

  heard({ number }: Farewell): void {
    this.#sql.exec('DELETE FROM farewells WHERE number = ?', number)
  }

  failed({ number, tries }: Farewell, nowMs: number): void {
    const waitMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** tries)
    this.#sql.exec(
      'UPDATE farewells SET tries = ?, next_ms = ? WHERE number = ?',
      tries + 1,
      nowMs + waitMs,
      number,
    )
  }

  get count(): number {
    return this.#sql.exec('SELECT number FROM farewells').toArray().length
  }

  /** When something is to be said next; undefined when all were told. */
  get nextMs(): number | undefined {
    const [row] = this.#sql.exec('SELECT MIN(next_ms) AS next FROM farewells').toArray()
    return row === undefined || row['next'] === null ? undefined : numberOf(row, 'next')
  }

  /**
   * What was issued for a sign-in up to now is not accepted any more; returns that moment. An issuer may give the same
   * sign-in to who comes back, so what it issues later is another matter. Nothing that was ended before is taken back.
   */
  endToken({ token, issuedMs = 0, expiresMs }: EndedToken, nowMs: number): number {
    // The issuer's clock may be ahead, but not of a token that is here.
    const endedMs = Math.max(nowMs, issuedMs)
    this.#sql.exec('DELETE FROM ended_tokens WHERE until_ms <= ?', nowMs)
    this.#sql.exec(
      `INSERT INTO ended_tokens (login, until_ms, ended_ms) VALUES (?, ?, ?)
       ON CONFLICT (login) DO UPDATE SET
         until_ms = MAX(until_ms, excluded.until_ms), ended_ms = MAX(ended_ms, excluded.ended_ms)`,
      token,
      Math.max(expiresMs, nowMs + ENDED_TOKEN_MS),
      endedMs,
    )
    this.#forgetOldest()
    return endedMs
  }

  /** Forgets which the oldest of the ended tokens were, but not that they are worth nothing. */
  #forgetOldest(): void {
    const oldest = 'FROM ended_tokens ORDER BY ended_ms DESC, login LIMIT -1 OFFSET ?'
    this.#sql.exec(
      `INSERT INTO forgotten_tokens
       SELECT 1, MAX(ended_ms), MAX(until_ms) FROM (SELECT * ${oldest}) HAVING COUNT(*) > 0
       ON CONFLICT (one) DO UPDATE SET
         ended_ms = MAX(ended_ms, excluded.ended_ms), until_ms = MAX(until_ms, excluded.until_ms)`,
      MAX_ENDED_TOKENS,
    )
    this.#sql.exec(`DELETE FROM ended_tokens WHERE login IN (SELECT login ${oldest})`, MAX_ENDED_TOKENS)
  }

  /** The account ends now: what was issued before is worth nothing. */
  close(nowMs: number): void {
    this.#sql.exec('INSERT OR REPLACE INTO closure VALUES (1, ?)', nowMs)
  }

  get deletedMs(): number | undefined {
    const [row] = this.#sql.exec('SELECT deleted_ms FROM closure').toArray()
    return row === undefined ? undefined : numberOf(row, 'deleted_ms')
  }

  /** Whether a token is still good: its sign-in has not ended, and the account was not deleted, since it was issued. */
  accepts({ login, issuedMs }: Dated, nowMs: number): boolean {
    const ends = this.#sql
      .exec(
        `SELECT until_ms, ended_ms FROM ended_tokens WHERE login = ?
         UNION ALL SELECT until_ms, ended_ms FROM forgotten_tokens`,
        login,
      )
      .toArray()
    for (const ended of ends) {
      if (!isIssuedBefore(numberOf(ended, 'ended_ms'), issuedMs)) continue
      if (issuedMs !== undefined || numberOf(ended, 'until_ms') > nowMs) return false
    }
    const { deletedMs } = this
    if (deletedMs === undefined) return true
    return issuedMs === undefined ? nowMs > deletedMs + UNDATED_MS : issuedMs > deletedMs + SKEW_MS
  }
}
