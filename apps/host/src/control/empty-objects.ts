import { Database } from 'bun:sqlite'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'

/** A database of an object is named by the object's id. */
export const OBJECT_FILE = /^([0-9a-f]{64})\.sqlite$/
/** What SQLite keeps beside a database. They go first: without it they mean nothing. */
const COMPANIONS = ['-wal', '-shm', '']
/** Where workerd keeps the alarms of all objects of a class. */
const ALARMS_FILE = 'metadata.sqlite'

function query(file: string, sql: string): readonly unknown[] {
  const database = new Database(file, { readonly: true })
  try {
    return database.query(sql).values().flat()
  } finally {
    database.close()
  }
}

/** Objects that have an alarm. */
function findAlarms(folder: string): ReadonlySet<unknown> {
  const file = path.join(folder, ALARMS_FILE)
  return new Set(existsSync(file) ? query(file, 'SELECT actor_id FROM _cf_ALARM') : [])
}

function isEmpty(file: string): boolean {
  try {
    return query(file, 'SELECT name FROM sqlite_master').length === 0
  } catch {
    // Not readable as a database: not ours to judge.
    return false
  }
}

/**
 * Removes the databases of objects that hold nothing, as destroyed sandboxes leave them, and returns how many. An object whose
 * database is gone begins with an empty one, so nothing is lost. Only while no workerd runs: it keeps them open.
 */
export function removeEmptyObjects(folder: string): number {
  if (!existsSync(folder)) return 0
  const alarms = findAlarms(folder)
  let count = 0
  for (const name of readdirSync(folder)) {
    const id = OBJECT_FILE.exec(name)?.[1]
    const file = path.join(folder, name)
    if (id === undefined || alarms.has(id) || !isEmpty(file)) continue
    for (const ending of COMPANIONS) rmSync(`${file}${ending}`, { force: true })
    count += 1
  }
  return count
}
