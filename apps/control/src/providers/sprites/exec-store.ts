import type { SessionKind } from '../provider.ts'
import { type Exec, numberOf, type Row, textOf } from '../../sql.ts'

/** A session of the exec API, as control stores it. */
export interface StoredExec {
  /** Id of the session, which clients know. */
  readonly session: string
  readonly kind: SessionKind
  /** What the API calls it; undefined while it is being started. */
  readonly known: { readonly id: string; readonly createdSeconds: number } | undefined
  /** Command template of a terminal; undefined: the shell. */
  readonly template: string | undefined
  readonly cmd: string
  /** Grant that authorized its start. */
  readonly grant: string | undefined
  readonly createdMs: number
  /** When the last client left; undefined while one is attached. */
  readonly detachedMs: number | undefined
  readonly keepSeconds: number
  /** 0: no limit. */
  readonly lifetimeSeconds: number
  readonly idleSeconds: number
  /** What its clients share: `ClaudeSession`; undefined for terminals. */
  readonly state: string | undefined
}

/** Not a part of the sandbox's schema: only sprites have sessions of their own. */
const SCHEMA = `CREATE TABLE IF NOT EXISTS exec_sessions (
  session TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  id TEXT,
  created_seconds INTEGER,
  template TEXT,
  cmd TEXT NOT NULL,
  grant_id TEXT,
  created_ms INTEGER NOT NULL,
  detached_ms INTEGER,
  keep_seconds INTEGER NOT NULL,
  lifetime_seconds INTEGER NOT NULL,
  idle_seconds INTEGER NOT NULL,
  state TEXT
)`

function optionalText(row: Row, column: string): string | undefined {
  return row[column] === null ? undefined : textOf(row, column)
}

function toExec(row: Row): StoredExec {
  const id = optionalText(row, 'id')
  return {
    session: textOf(row, 'session'),
    kind: textOf(row, 'kind') === 'claude' ? 'claude' : 'pty',
    known: id === undefined ? undefined : { id, createdSeconds: numberOf(row, 'created_seconds') },
    template: optionalText(row, 'template'),
    cmd: textOf(row, 'cmd'),
    grant: optionalText(row, 'grant_id'),
    createdMs: numberOf(row, 'created_ms'),
    detachedMs: row['detached_ms'] === null ? undefined : numberOf(row, 'detached_ms'),
    keepSeconds: numberOf(row, 'keep_seconds'),
    lifetimeSeconds: numberOf(row, 'lifetime_seconds'),
    idleSeconds: numberOf(row, 'idle_seconds'),
    state: optionalText(row, 'state'),
  }
}

/** The sessions of one sandbox in its object's database. */
export class ExecStore {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  all(): readonly StoredExec[] {
    return this.#run('SELECT * FROM exec_sessions ORDER BY created_ms').map(toExec)
  }

  find(session: string): StoredExec | undefined {
    const [row] = this.#run('SELECT * FROM exec_sessions WHERE session = ?', session)
    return row === undefined ? undefined : toExec(row)
  }

  insert(exec: Omit<StoredExec, 'known' | 'detachedMs'>): void {
    const { session, kind, template, cmd, grant, createdMs, keepSeconds, lifetimeSeconds } = exec
    this.#run(
      'INSERT OR IGNORE INTO exec_sessions VALUES (?, ?, NULL, NULL, ?, ?, ?, ?, NULL, ?, ?, ?, ?)',
      session,
      kind,
      template ?? null,
      cmd,
      grant ?? null,
      createdMs,
      keepSeconds,
      lifetimeSeconds,
      exec.idleSeconds,
      exec.state ?? null,
    )
  }

  setKnown(session: string, { id, createdSeconds }: NonNullable<StoredExec['known']>): void {
    this.#run(
      'UPDATE exec_sessions SET id = ?, created_seconds = ? WHERE session = ?',
      id,
      createdSeconds,
      session,
    )
  }

  /** Undefined: a client is attached. */
  setDetached(session: string, atMs: number | undefined): void {
    this.#run('UPDATE exec_sessions SET detached_ms = ? WHERE session = ?', atMs ?? null, session)
  }

  setState(session: string, state: string): void {
    this.#run('UPDATE exec_sessions SET state = ? WHERE session = ?', state, session)
  }

  remove(session: string): void {
    this.#run('DELETE FROM exec_sessions WHERE session = ?', session)
  }

  clear(): void {
    this.#run('DELETE FROM exec_sessions')
  }

  #run(query: string, ...bindings: (string | number | null)[]): readonly Row[] {
    // Each time, because destroying a sandbox deletes its tables.
    this.#exec(SCHEMA)
    return this.#exec(query, ...bindings)
  }
}
