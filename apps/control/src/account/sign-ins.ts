import type { SignIn } from '../auth/browser-sign-in.ts'
import type { Scope } from '../auth/identity.ts'
import { numberOf, type Row, type Sql, textOf } from '../sql.ts'

/** How long a browser stays signed in. */
export const SIGN_IN_LIFE_MS = 12 * 60 * 60 * 1000

/** Browsers signed in to one account; the oldest is signed out for the next one. */
const MAX_SIGN_INS = 64

/** A login state that was used; kept until it would not be accepted anyway. */
export interface SpentState {
  readonly hash: string
  readonly expiresMs: number
}

function signInOf(row: Row): SignIn {
  return {
    login: textOf(row, 'login'),
    name: textOf(row, 'name'),
    scopes: JSON.parse(textOf(row, 'scopes')) as Scope[],
    issuer: row['issuer'] === null ? null : textOf(row, 'issuer'),
    issuerBinding: row['voucher'] === null ? null : textOf(row, 'voucher'),
    createdMs: numberOf(row, 'created_ms'),
    expiresMs: numberOf(row, 'expires_ms'),
  }
}

/** The browsers signed in to an account. */
export class SignIns {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Remembers a browser by the hash of its cookie; returns the logins that had to go for it. */
  add(signIn: SignIn, hash: string): readonly string[] {
    const { login, name, scopes, issuer, issuerBinding, createdMs, expiresMs } = signIn
    this.removeExpired(createdMs)
    const known = this.list(createdMs)
    const tooMany = known.slice(0, Math.max(0, known.length + 1 - MAX_SIGN_INS)).map((old) => old.login)
    for (const old of tooMany) this.remove(old)
    this.#sql.exec(
      `INSERT INTO logins (login, hash, name, scopes, issuer, voucher, created_ms, expires_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      login,
      hash,
      name,
      JSON.stringify(scopes),
      issuer,
      issuerBinding,
      createdMs,
      expiresMs,
    )
    return tooMany
  }

  find(hash: string, nowMs: number): SignIn | undefined {
    const [row] = this.#sql
      .exec('SELECT * FROM logins WHERE hash = ? AND expires_ms > ?', hash, nowMs)
      .toArray()
    return row === undefined ? undefined : signInOf(row)
  }

  /** Oldest first. */
  list(nowMs: number): readonly SignIn[] {
    return this.#sql
      .exec('SELECT * FROM logins WHERE expires_ms > ? ORDER BY created_ms, login', nowMs)
      .toArray()
      .map(signInOf)
  }

  /** Whether there was such a login. */
  remove(login: string): boolean {
    return this.#sql.exec('DELETE FROM logins WHERE login = ? RETURNING login', login).toArray().length > 0
  }

  /** Whether a state was spent by this call; false when it had been before. */
  spend(stateHash: string, expiresMs: number): boolean {
    return (
      this.#sql
        .exec('INSERT OR IGNORE INTO spent_states VALUES (?, ?) RETURNING hash', stateHash, expiresMs)
        .toArray().length > 0
    )
  }

  removeExpired(nowMs: number): void {
    this.#sql.exec('DELETE FROM logins WHERE expires_ms <= ?', nowMs)
    this.#sql.exec('DELETE FROM spent_states WHERE expires_ms <= ?', nowMs)
  }
}
