import { Database } from 'bun:sqlite'
import { closeSync, existsSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'

/** What a database begins with (https://sqlite.org/fileformat.html, 1.3). */
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'

function readHeader(file: string): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  const fd = openSync(file, 'r')
  try {
    readSync(fd, header)
    return header
  } finally {
    closeSync(fd)
  }
}

/** Whether a file has all the pages that it says it has. */
function isWhole(file: string, sizeBytes: number): boolean {
  const header = readHeader(file)
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return false
  // A page of 64 KiB is said with 1.
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return pageBytes > 0 && sizeBytes % pageBytes === 0 && sizeBytes / pageBytes >= header.readUInt32BE(28)
}

/** What is in the log is for SQLite to judge; it is never there before the first page of the file is. */
function isBroken(file: string): boolean {
  const hasLog = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const { size } = statSync(file)
  if (hasLog) return readHeader(file).toString('latin1', 0, MAGIC.length) !== MAGIC
  return size > 0 && !isWhole(file, size)
}

/**
 * Refuses databases of control that are visibly cut short or hold something else: SQLite takes one of less than a page for a
 * new one, and what was in it would be gone without a word. A log that is missing or cut short cannot be seen.
 */
export function refuseBrokenDatabases(objects: string): void {
  const names = readdirSync(objects, { recursive: true, encoding: 'utf8' })
  const broken = names
    .filter((name) => name.endsWith('.sqlite'))
    .find((name) => isBroken(path.join(objects, name)))
  if (broken === undefined) return
  throw new SandwireError(
    'bad_request',
    `Cannot use "${path.join(objects, broken)}": it is no whole database\nhint: put it back from a backup, or choose another folder with --data`,
  )
}

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
