import type { SignIn } from '../auth/browser-sign-in.ts'
import { isIssuedBefore, type Scope } from '../auth/identity.ts'
import { numberOf, type Row, type Sql, textOf } from '../sql.ts'

/** How long a browser stays signed in. */
export const SIGN_IN_LIFE_MS = 12 * 60 * 60 * 1000

/** Browsers signed in to one account; the oldest is signed out when another signs in. */
const MAX_SIGN_INS = 64

/** Ended tokens that are remembered individually; beyond that, every token as old as the forgotten ones is refused. */
const MAX_ENDED_TOKENS = 1_000
/** For how long at least: other tokens of the sign-in may live longer than the one it was ended with. */
const ENDED_TOKEN_MS = 30 * 24 * 60 * 60 * 1000
/** How far an issuer's clock may be ahead of ours. */
const SKEW_MS = 60_000
/** How long tokens without an issue time are refused after the account was deleted. */
const UNDATED_MS = 24 * 60 * 60 * 1000

/** A login state that completed a sign-in; stored until it would expire anyway. */
export interface UsedState {
  readonly hash: string
  readonly expiresMs: number
}

function signInOf(row: Row): SignIn {
  return {
    login: textOf(row, 'login'),
    name: textOf(row, 'name'),
    scopes: JSON.parse(textOf(row, 'scopes')) as Scope[],
    issuer: row['issuer'] === null ? null : textOf(row, 'issuer'),
    issuerBinding: row['issuer_binding'] === null ? null : textOf(row, 'issuer_binding'),
    createdMs: numberOf(row, 'created_ms'),
    expiresMs: numberOf(row, 'expires_ms'),
  }
}

/** Browsers that are signed in to an account. */
export class SignIns {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** Stores a sign-in by the hash of its cookie; returns the logins that it replaced. */
  add(signIn: SignIn, hash: string): readonly string[] {
    const { login, name, scopes, issuer, issuerBinding, createdMs, expiresMs } = signIn
    this.removeExpired(createdMs)
    const known = this.list(createdMs)
    const tooMany = known.slice(0, Math.max(0, known.length + 1 - MAX_SIGN_INS)).map((old) => old.login)
    for (const old of tooMany) this.remove(old)
    this.#sql.exec(
      `INSERT INTO sign_ins (login, hash, name, scopes, issuer, issuer_binding, created_ms, expires_ms)
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
      .exec('SELECT * FROM sign_ins WHERE hash = ? AND expires_ms > ?', hash, nowMs)
      .toArray()
    return row === undefined ? undefined : signInOf(row)
  }

  /** Oldest first. */
  list(nowMs: number): readonly SignIn[] {
    return this.#sql
      .exec('SELECT * FROM sign_ins WHERE expires_ms > ? ORDER BY created_ms, login', nowMs)
      .toArray()
      .map(signInOf)
  }

  /** False when there is no such login. */
  remove(login: string): boolean {
    return this.#sql.exec('DELETE FROM sign_ins WHERE login = ? RETURNING login', login).toArray().length > 0
  }

  /** Marks a login state as used; false when it was used before. */
  useState(stateHash: string, expiresMs: number): boolean {
    return (
      this.#sql
        .exec('INSERT OR IGNORE INTO used_states VALUES (?, ?) RETURNING hash', stateHash, expiresMs)
        .toArray().length > 0
    )
  }

  removeExpired(nowMs: number): void {
    this.#sql.exec('DELETE FROM sign_ins WHERE expires_ms <= ?', nowMs)
    this.#sql.exec('DELETE FROM used_states WHERE expires_ms <= ?', nowMs)
  }
}

/** The token that a client signs out with. */
export interface EndedToken {
  /** Id of its sign-in, or of the token itself. */
  readonly token: string
  readonly issuedMs?: number
  readonly expiresMs: number
}

/** A credential and when it was issued. */
export interface IssuedCredential {
  readonly login: string
  readonly issuedMs?: number
}

/** Tokens that are refused although they have not expired: their sign-in ended, or the account was deleted. */
export class EndedTokens {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /**
   * Refuses what was issued for a sign-in until now; returns that time. An issuer may use the same sign-in id again, so
   * tokens that it issues later are accepted. An earlier end is never moved back.
   */
  end({ token, issuedMs = 0, expiresMs }: EndedToken, nowMs: number): number {
    // The issuer's clock may be ahead of ours.
    const endedMs = Math.max(nowMs, issuedMs)
    this.#sql.exec('DELETE FROM ended_tokens WHERE forget_ms <= ?', nowMs)
    this.#sql.exec(
      `INSERT INTO ended_tokens (login, ended_ms, forget_ms) VALUES (?, ?, ?)
       ON CONFLICT (login) DO UPDATE SET
         ended_ms = MAX(ended_ms, excluded.ended_ms), forget_ms = MAX(forget_ms, excluded.forget_ms)`,
      token,
      endedMs,
      Math.max(expiresMs, nowMs + ENDED_TOKEN_MS),
    )
    this.#mergeOldest()
    return endedMs
  }

  /** Beyond the limit, replaces the oldest ended tokens by one row that refuses everything as old as they are. */
  #mergeOldest(): void {
    const oldest = 'FROM ended_tokens ORDER BY ended_ms DESC, login LIMIT -1 OFFSET ?'
    this.#sql.exec(
      `INSERT INTO merged_ended_tokens
       SELECT 1, MAX(ended_ms), MAX(forget_ms) FROM (SELECT * ${oldest}) HAVING COUNT(*) > 0
       ON CONFLICT (one) DO UPDATE SET
         ended_ms = MAX(ended_ms, excluded.ended_ms), forget_ms = MAX(forget_ms, excluded.forget_ms)`,
      MAX_ENDED_TOKENS,
    )
    this.#sql.exec(`DELETE FROM ended_tokens WHERE login IN (SELECT login ${oldest})`, MAX_ENDED_TOKENS)
  }

  /** Refuses everything that was issued before the account was deleted. */
  deleteAccount(nowMs: number): void {
    this.#sql.exec('INSERT OR REPLACE INTO account_deletion VALUES (1, ?)', nowMs)
  }

  get accountDeletedMs(): number | undefined {
    const [row] = this.#sql.exec('SELECT deleted_ms FROM account_deletion').toArray()
    return row === undefined ? undefined : numberOf(row, 'deleted_ms')
  }

  /** True when the sign-in has not ended, and the account was not deleted, since the credential was issued. */
  accepts({ login, issuedMs }: IssuedCredential, nowMs: number): boolean {
    const ends = this.#sql
      .exec(
        `SELECT ended_ms, forget_ms FROM ended_tokens WHERE login = ?
         UNION ALL SELECT ended_ms, forget_ms FROM merged_ended_tokens`,
        login,
      )
      .toArray()
    for (const ended of ends) {
      if (!isIssuedBefore(numberOf(ended, 'ended_ms'), issuedMs)) continue
      if (issuedMs !== undefined || numberOf(ended, 'forget_ms') > nowMs) return false
    }
    const { accountDeletedMs } = this
    if (accountDeletedMs === undefined) return true
    return issuedMs === undefined
      ? nowMs > accountDeletedMs + UNDATED_MS
      : issuedMs > accountDeletedMs + SKEW_MS
  }
}
