/** A row as SQLite returns it. */
export type Row = Readonly<Record<string, ArrayBuffer | string | number | null>>

/** The part of a Durable Object's SQL that stores use. */
export interface Sql {
  exec(query: string, ...bindings: (string | number | null)[]): { toArray(): Row[] }
}

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

/** Applies the migrations that a database has not seen, in order. They are numbered from 1 and never change. */
export function migrate(sql: Sql, migrations: readonly string[]): void {
  sql.exec('CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY)')
  const [row] = sql.exec('SELECT COALESCE(MAX(number), 0) AS last FROM migrations').toArray()
  const last = row === undefined ? 0 : numberOf(row, 'last')
  for (const [index, statement] of migrations.entries()) {
    if (index + 1 <= last) continue
    sql.exec(statement)
    sql.exec('INSERT INTO migrations (number) VALUES (?)', index + 1)
  }
}
