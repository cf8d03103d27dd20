import type { Database } from 'bun:sqlite'
import type { Sql } from '../../src/sql.ts'

type Value = string | number | null

/** Bun's SQLite in the shape of a Durable Object's. */
export function sqlOf(database: Database): Sql {
  return {
    exec(query, ...bindings) {
      const all = database.query<Record<string, Value>, Value[]>(query).all(...bindings)
      return { toArray: () => all }
    },
  }
}
