import type { SandboxView } from '../sandbox/record.ts'
import type { SessionFacts } from '../sandbox/session-view.ts'
import { SHARED_ARRIVAL_MIGRATIONS, SHARED_MIGRATIONS } from './shared.ts'
import { migrate, type Sql, textOf } from '../sql.ts'
import { ATTACH_BUDGET_MIGRATION } from './attach-budget.ts'
import { AUDIT_SHARE_MIGRATIONS } from './audit-shares.ts'
import { AUDIT_ACCOUNT_MIGRATION, AUDIT_GRANT_MIGRATION, AUDIT_MIGRATIONS } from './audit-store.ts'
import { ENDED_MIGRATIONS, FAREWELL_MIGRATIONS, FORGOTTEN_MIGRATION } from './farewells.ts'

const MIGRATIONS: readonly string[] = [
  `CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    view TEXT
  )`,
  `CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    sandbox TEXT NOT NULL,
    facts TEXT NOT NULL
  )`,
  'CREATE TABLE sign_ins (hash TEXT PRIMARY KEY, expires_ms INTEGER NOT NULL)',
  ...AUDIT_MIGRATIONS,
  // Their cookies did not name an account; they were good for half a day.
  'DROP TABLE sign_ins',
  `CREATE TABLE logins (
    login TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    issuer TEXT,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
  )`,
  // States of completed sign-ins, until they would have expired anyway.
  'CREATE TABLE spent_states (hash TEXT PRIMARY KEY, expires_ms INTEGER NOT NULL)',
  ...SHARED_MIGRATIONS,
  ATTACH_BUDGET_MIGRATION,
  AUDIT_GRANT_MIGRATION,
  ...FAREWELL_MIGRATIONS,
  ...ENDED_MIGRATIONS,
  ...SHARED_ARRIVAL_MIGRATIONS,
  ...AUDIT_SHARE_MIGRATIONS,
  'ALTER TABLE logins ADD COLUMN voucher TEXT',
  AUDIT_ACCOUNT_MIGRATION,
  FORGOTTEN_MIGRATION,
]

/** A session in the account's index. */
export interface IndexedSession extends SessionFacts {
  readonly sandbox: string
  readonly sandboxName: string
}

/** All SQL of an account's object. The values are our own, so they are parsed and not checked. */
export class AccountStore {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
    migrate(sql, MIGRATIONS)
  }

  countSandboxes(): number {
    return this.#sql.exec('SELECT id FROM sandboxes').toArray().length
  }

  idOf(name: string): string | undefined {
    const [row] = this.#sql.exec('SELECT id FROM sandboxes WHERE name = ?', name).toArray()
    return row === undefined ? undefined : textOf(row, 'id')
  }

  insertSandbox(id: string, name: string): void {
    this.#sql.exec('INSERT INTO sandboxes (id, name) VALUES (?, ?)', id, name)
  }

  /** Unknown sandboxes are not added: a report can arrive after the sandbox is gone. */
  setView(view: SandboxView): void {
    const text = JSON.stringify(view)
    this.#sql.exec('UPDATE sandboxes SET view = ? WHERE id = ? AND view IS NOT ?', text, view.id, text)
  }

  /** Replaces the sessions that are known of a sandbox; what is the same is not written again. */
  setSessions(sandbox: string, sessions: readonly SessionFacts[]): void {
    const rows = this.#sql.exec('SELECT id, facts FROM sessions WHERE sandbox = ?', sandbox).toArray()
    const known = new Map(rows.map((row) => [textOf(row, 'id'), textOf(row, 'facts')]))
    for (const session of sessions) {
      const facts = JSON.stringify(session)
      if (known.get(session.id) !== facts)
        this.#sql.exec(
          `INSERT INTO sessions (id, sandbox, facts) SELECT ?, id, ? FROM sandboxes WHERE id = ?
           ON CONFLICT (id) DO UPDATE SET sandbox = excluded.sandbox, facts = excluded.facts`,
          session.id,
          facts,
          sandbox,
        )
      known.delete(session.id)
    }
    for (const id of known.keys()) this.#sql.exec('DELETE FROM sessions WHERE id = ?', id)
  }

  removeSandbox(id: string): void {
    this.#sql.exec('DELETE FROM sessions WHERE sandbox = ?', id)
    this.#sql.exec('DELETE FROM sandboxes WHERE id = ?', id)
  }

  /** Sandboxes by name. One whose making broke off has no view yet. */
  sandboxes(): readonly { readonly id: string; readonly name: string; readonly view?: SandboxView }[] {
    return this.#sql
      .exec('SELECT id, name, view FROM sandboxes ORDER BY name')
      .toArray()
      .map((row) => ({
        id: textOf(row, 'id'),
        name: textOf(row, 'name'),
        ...(row['view'] === null ? {} : { view: JSON.parse(textOf(row, 'view')) as SandboxView }),
      }))
  }

  sessions(): readonly IndexedSession[] {
    return this.#sql
      .exec(
        `SELECT sessions.facts, sandboxes.id AS sandbox, sandboxes.name AS name
         FROM sessions JOIN sandboxes ON sandboxes.id = sessions.sandbox ORDER BY name, sessions.id`,
      )
      .toArray()
      .map((row) => ({
        ...(JSON.parse(textOf(row, 'facts')) as SessionFacts),
        sandbox: textOf(row, 'sandbox'),
        sandboxName: textOf(row, 'name'),
      }))
  }
}
