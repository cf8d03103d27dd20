/** A row as SQLite returns it. */
export type Row = Readonly<Record<string, ArrayBuffer | string | number | null>>

/** The part of a Durable Object's SQL that stores use. */
export interface Sql {
  exec(query: string, ...bindings: (string | number | null | Uint8Array<ArrayBuffer>)[]): { toArray(): Row[] }
}

/** Runs a query and returns its rows. */
export type Exec = (query: string, ...bindings: (string | number | null)[]) => readonly Row[]

/** A text column; throws when it holds something else, which only a wrong query can cause. */
export function textOf(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new Error(`Column ${column} holds no text`)
  return value
}

/** A number column; throws when it holds something else. */
export function numberOf(row: Row, column: string): number {
  const value = row[column]
  if (typeof value !== 'number') throw new Error(`Column ${column} holds no number`)
  return value
}

/** The tables of a store. `version` changes with every change of the tables. */
export interface Schema {
  readonly version: number
  readonly statements: readonly string[]
}

/** True when a store was created in this database. */
export function hasSchema(sql: Sql): boolean {
  // `migrations`: stores from before schemas had a version.
  const query = "SELECT name FROM sqlite_master WHERE name IN ('schema_version', 'migrations')"
  return sql.exec(query).toArray().length > 0
}

/** Creates the tables in an empty database; throws when they are of another version. */
export function openSchema(sql: Sql, { version, statements }: Schema): void {
  if (hasSchema(sql)) return checkVersion(sql, version)
  for (const statement of statements) sql.exec(statement)
  sql.exec('CREATE TABLE schema_version (version INTEGER NOT NULL)')
  sql.exec('INSERT INTO schema_version VALUES (?)', version)
}

function checkVersion(sql: Sql, version: number): void {
  const tables = sql.exec("SELECT name FROM sqlite_master WHERE name = 'schema_version'").toArray()
  const [row] = tables.length === 0 ? [] : sql.exec('SELECT version FROM schema_version').toArray()
  const found = row === undefined ? 'an older one' : numberOf(row, 'version')
  if (found !== version)
    throw new Error(`Cannot open the store: its schema version is ${found}, this version needs ${version}`)
}
