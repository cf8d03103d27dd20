import { type Exec, numberOf, type Row, textOf } from '../../sql.ts'

/** A terminal of the exec API, as control stores it. */
export interface StoredExec {
  /** Id of the session, which clients know. */
  readonly session: string
  /** What the API calls it; undefined while it is being started. */
  readonly known: { readonly id: string; readonly createdSeconds: number } | undefined
  /** Command template; undefined: the shell. */
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
}

/** Not a part of the sandbox's schema: only sprites have terminals of their own. */
const SCHEMA = `CREATE TABLE IF NOT EXISTS execs (
  session TEXT PRIMARY KEY,
  id TEXT,
  created_seconds INTEGER,
  template TEXT,
  cmd TEXT NOT NULL,
  grant_id TEXT,
  created_ms INTEGER NOT NULL,
  detached_ms INTEGER,
  keep_seconds INTEGER NOT NULL,
  lifetime_seconds INTEGER NOT NULL,
  idle_seconds INTEGER NOT NULL
)`

function optionalText(row: Row, column: string): string | undefined {
  return row[column] === null ? undefined : textOf(row, column)
}

function toExec(row: Row): StoredExec {
  const id = optionalText(row, 'id')
  return {
    session: textOf(row, 'session'),
    known: id === undefined ? undefined : { id, createdSeconds: numberOf(row, 'created_seconds') },
    template: optionalText(row, 'template'),
    cmd: textOf(row, 'cmd'),
    grant: optionalText(row, 'grant_id'),
    createdMs: numberOf(row, 'created_ms'),
    detachedMs: row['detached_ms'] === null ? undefined : numberOf(row, 'detached_ms'),
    keepSeconds: numberOf(row, 'keep_seconds'),
    lifetimeSeconds: numberOf(row, 'lifetime_seconds'),
    idleSeconds: numberOf(row, 'idle_seconds'),
  }
}

/** The terminals of one sandbox in its object's database. */
export class ExecStore {
  readonly #exec: Exec

  constructor(exec: Exec) {
    this.#exec = exec
  }

  all(): readonly StoredExec[] {
    return this.#run('SELECT * FROM execs ORDER BY created_ms').map(toExec)
  }

  find(session: string): StoredExec | undefined {
    const [row] = this.#run('SELECT * FROM execs WHERE session = ?', session)
    return row === undefined ? undefined : toExec(row)
  }

  insert(exec: Omit<StoredExec, 'known' | 'detachedMs'>): void {
    const { session, template, cmd, grant, createdMs, keepSeconds, lifetimeSeconds, idleSeconds } = exec
    this.#run(
      'INSERT OR IGNORE INTO execs VALUES (?, NULL, NULL, ?, ?, ?, ?, NULL, ?, ?, ?)',
      session,
      template ?? null,
      cmd,
      grant ?? null,
      createdMs,
      keepSeconds,
      lifetimeSeconds,
      idleSeconds,
    )
  }

  setKnown(session: string, { id, createdSeconds }: NonNullable<StoredExec['known']>): void {
    this.#run('UPDATE execs SET id = ?, created_seconds = ? WHERE session = ?', id, createdSeconds, session)
  }

  /** Undefined: a client is attached. */
  setDetached(session: string, atMs: number | undefined): void {
    this.#run('UPDATE execs SET detached_ms = ? WHERE session = ?', atMs ?? null, session)
  }

  remove(session: string): void {
    this.#run('DELETE FROM execs WHERE session = ?', session)
  }

  clear(): void {
    this.#run('DELETE FROM execs')
  }

  #run(query: string, ...bindings: (string | number | null)[]): readonly Row[] {
    // Each time, because destroying a sandbox deletes its tables.
    this.#exec(SCHEMA)
    return this.#exec(query, ...bindings)
  }
}
