import type { Database } from 'bun:sqlite'
import type { Row, Sql } from '../../src/sql.ts'

type Value = string | number | null | Uint8Array<ArrayBuffer>

/** Bun's SQLite in the shape of a Durable Object's. */
export function sqlOf(database: Database): Sql {
  return {
    exec(query, ...bindings) {
      const all = database.query<Row, Value[]>(query).all(...bindings)
      return { toArray: () => all }
    },
  }
}
