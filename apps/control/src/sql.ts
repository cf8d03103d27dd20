/** The part of a Durable Object's SQL that stores use. */
export interface Sql {
  exec(
    query: string,
    ...bindings: (string | number | null)[]
  ): { toArray(): Record<string, ArrayBuffer | string | number | null>[] }
}

/** Applies the migrations that a database has not seen, in order. They are numbered from 1 and never change. */
export function migrate(sql: Sql, migrations: readonly string[]): void {
  sql.exec('CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY)')
  const [row] = sql.exec('SELECT COALESCE(MAX(number), 0) AS last FROM migrations').toArray()
  const last = Number(row?.['last'] ?? 0)
  for (const [index, statement] of migrations.entries()) {
    if (index + 1 <= last) continue
    sql.exec(statement)
    sql.exec('INSERT INTO migrations (number) VALUES (?)', index + 1)
  }
}
