import { CONTAINER_MIGRATIONS, ContainerStore } from '../providers/container/container-store.ts'
import { migrate, numberOf, type Row, type Sql, textOf } from '../sql.ts'
import { SESSION_ALIAS_SCHEMA, SessionAliases } from '../compat/session-aliases.ts'
import { AUDIT_DROPS_MIGRATION, AUDIT_OUTBOX_MIGRATION, AuditOutbox } from './audit-outbox.ts'
import { CUT_MIGRATIONS, CutOutbox, ENDED_LOGIN_MIGRATION } from './cut-outbox.ts'
import { PLAIN_STAYS_MIGRATION, PlainStays } from './plain-stays.ts'
import type { SandboxRecord, SandboxSettings } from './record.ts'
import { SharingStore } from './sharing-store.ts'
import type { SandboxState } from './state.ts'

const MIGRATIONS: readonly string[] = [
  `CREATE TABLE sandbox (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    settings TEXT NOT NULL,
    state TEXT NOT NULL,
    last_activity_ms INTEGER NOT NULL
  )`,
  'CREATE TABLE pins (session TEXT PRIMARY KEY, pinned INTEGER NOT NULL)',
  `CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    account TEXT,
    session TEXT,
    role TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    link_hash TEXT,
    label TEXT NOT NULL
  )`,
  "ALTER TABLE grants ADD COLUMN owner_name TEXT NOT NULL DEFAULT ''",
  "ALTER TABLE grants ADD COLUMN account_name TEXT NOT NULL DEFAULT ''",
  `CREATE TABLE tickets (
    hash TEXT PRIMARY KEY,
    login TEXT,
    expires_ms INTEGER NOT NULL,
    ticket TEXT NOT NULL
  )`,
  AUDIT_OUTBOX_MIGRATION,
  ...CUT_MIGRATIONS,
  ...CONTAINER_MIGRATIONS,
  ENDED_LOGIN_MIGRATION,
  AUDIT_DROPS_MIGRATION,
  PLAIN_STAYS_MIGRATION,
  ...SESSION_ALIAS_SCHEMA,
]

/**
 * All SQL of a sandbox's object. The values are our own, so they are parsed and not checked. An object without a sandbox,
 * never made or destroyed, stays empty: asking it writes nothing.
 */
export class SandboxStore {
  readonly #sql: Sql
  #hasTables = false
  /** Grants and tickets. */
  readonly sharing: SharingStore
  /** What the owner's audit is still to be told. */
  readonly audit: AuditOutbox
  /** Connections that are still to be cut, and sign-ins that ended. */
  readonly cuts: CutOutbox
  /** Plain connections whose rights can end. */
  readonly stays: PlainStays
  /** Names that clients made up for sessions. */
  readonly aliases: SessionAliases
  /** What the object remembers of its container, where it has one. */
  readonly container: ContainerStore

  constructor(sql: Sql) {
    this.#sql = sql
    this.sharing = new SharingStore((query, ...bindings) => this.#exec(query, ...bindings))
    this.audit = new AuditOutbox((query, ...bindings) => this.#exec(query, ...bindings))
    this.cuts = new CutOutbox((query, ...bindings) => this.#exec(query, ...bindings))
    this.stays = new PlainStays((query, ...bindings) => this.#exec(query, ...bindings))
    this.aliases = new SessionAliases((query, ...bindings) => this.#exec(query, ...bindings))
    this.container = new ContainerStore((query, ...bindings) => this.#exec(query, ...bindings))
    const tables = sql.exec("SELECT name FROM sqlite_master WHERE name = 'sandbox'").toArray()
    if (tables.length > 0) this.#prepare()
  }

  read(): SandboxRecord | undefined {
    const [row] = this.#exec('SELECT * FROM sandbox')
    if (row === undefined) return undefined
    return {
      id: textOf(row, 'id'),
      owner: textOf(row, 'owner'),
      name: textOf(row, 'name'),
      createdMs: numberOf(row, 'created_ms'),
      settings: JSON.parse(textOf(row, 'settings')) as SandboxSettings,
      state: JSON.parse(textOf(row, 'state')) as SandboxState,
      lastActivityMs: numberOf(row, 'last_activity_ms'),
    }
  }

  /** Writes the record unless there is one. */
  insert(record: SandboxRecord): void {
    this.#prepare()
    this.#exec(
      'INSERT INTO sandbox VALUES (1, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
      record.id,
      record.owner,
      record.name,
      record.createdMs,
      JSON.stringify(record.settings),
      JSON.stringify(record.state),
      record.lastActivityMs,
    )
  }

  /** Everything stored was deleted, the tables too. */
  forget(): void {
    this.#hasTables = false
  }

  setState(state: SandboxState): void {
    // What is the same is not written again: every row costs, and most looks find nothing new.
    const text = JSON.stringify(state)
    this.#exec('UPDATE sandbox SET state = ? WHERE state <> ?', text, text)
  }

  setSettings(settings: SandboxSettings): void {
    this.#exec('UPDATE sandbox SET settings = ?', JSON.stringify(settings))
  }

  /** Notes activity; an older time changes nothing. */
  touch(ms: number): void {
    const atMs = Math.round(ms)
    this.#exec('UPDATE sandbox SET last_activity_ms = ? WHERE last_activity_ms < ?', atMs, atMs)
  }

  /** Sessions that were pinned or unpinned after their start. */
  pins(): ReadonlyMap<string, boolean> {
    const rows = this.#exec('SELECT session, pinned FROM pins')
    return new Map(rows.map((row) => [textOf(row, 'session'), numberOf(row, 'pinned') === 1]))
  }

  setPin(session: string, pinned: boolean): void {
    this.#exec('INSERT OR REPLACE INTO pins VALUES (?, ?)', session, pinned ? 1 : 0)
  }

  forgetPin(session: string): void {
    this.#exec('DELETE FROM pins WHERE session = ?', session)
  }

  #prepare(): void {
    if (!this.#hasTables) migrate(this.#sql, MIGRATIONS)
    this.#hasTables = true
  }

  #exec(query: string, ...bindings: (string | number | null)[]): readonly Row[] {
    return this.#hasTables ? this.#sql.exec(query, ...bindings).toArray() : []
  }
}
