import { constants, Database } from 'bun:sqlite'
import { createHash, createHmac } from 'node:crypto'
import { closeSync, existsSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { SandwireError } from '@sandwire/protocol'

/** SQLite's header (https://sqlite.org/fileformat.html, 1.3). */
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

/** True when the file has all pages that its header declares. */
function isWhole(file: string, sizeBytes: number): boolean {
  const header = readHeader(file)
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return false
  // 1 stands for 64 KiB.
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return pageBytes > 0 && sizeBytes % pageBytes === 0 && sizeBytes / pageBytes >= header.readUInt32BE(28)
}

/** With a WAL, only the header is checked; SQLite checks the rest. */
function isBroken(file: string): boolean {
  const hasLog = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const { size } = statSync(file)
  if (hasLog) return readHeader(file).toString('latin1', 0, MAGIC.length) !== MAGIC
  return size > 0 && !isWhole(file, size)
}

/**
 * Refuses databases that are truncated or not SQLite: SQLite would treat one smaller than a page as new, and silently lose its
 * content.
 */
export function refuseBrokenDatabases(objects: string): void {
  const names = readdirSync(objects, { recursive: true, encoding: 'utf8' })
  const broken = names
    .filter((name) => name.endsWith('.sqlite'))
    .find((name) => isBroken(path.join(objects, name)))
  if (broken === undefined) return
  throw new SandwireError(
    'bad_request',
    `Cannot use "${path.join(objects, broken)}": the database is damaged\nhint: restore it from a backup, or choose another folder with --data`,
  )
}

/** A database may be written while it is read. */
const RECHECK_MS = 500

/** True if pages of the file are damaged. Without locks and the write-ahead log, since workerd has the database open. */
function hasDamagedPages(file: string): boolean {
  try {
    const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI
    using database = new Database(`${pathToFileURL(file).href}?immutable=1`, flags)
    return database.query('PRAGMA quick_check(1)').values().flat()[0] !== 'ok'
  } catch {
    // Not a database any more.
    return true
  }
}

/** Databases with damaged pages, which SQLite reports without the name of the file. Reads all of them. */
export async function findDamagedDatabases(objects: string): Promise<string[]> {
  const files = readdirSync(objects, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.sqlite'))
    .map((name) => path.join(objects, name))
  const damaged: string[] = []
  for (const file of files) {
    await Bun.sleep(0)
    if (!hasDamagedPages(file)) continue
    await Bun.sleep(RECHECK_MS)
    if (existsSync(file) && hasDamagedPages(file)) damaged.push(file)
  }
  return damaged
}

/** Moves the content of write-ahead logs into their databases. Must not run while workerd has them open. */
export function checkpointDatabases(objects: string): void {
  for (const name of readdirSync(objects, { recursive: true, encoding: 'utf8' })) {
    const file = path.join(objects, name)
    if (!name.endsWith('.sqlite') || !existsSync(`${file}-wal`)) continue
    const database = new Database(file)
    try {
      // Closing the last connection removes the log.
      database.run('PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      database.close()
    }
  }
}

/** Largest database without tables. */
export const EMPTY_DATABASE_BYTES = 4096
/** An object's id has two hashes of this size. */
const ID_HALF_BYTES = 16

/** File name of an object's database. */
export const OBJECT_FILE = /^([0-9a-f]{64})\.sqlite$/

/** Path of the database of the object with this name. Its id is derived as in workerd's `ActorIdFactoryImpl`, which never changes. */
export function databaseOf(objects: string, uniqueKey: string, name: string): string {
  const key = createHash('sha256').update(uniqueKey).digest()
  const first = (text: string | Buffer): Buffer =>
    createHmac('sha256', key).update(text).digest().subarray(0, ID_HALF_BYTES)
  const half = first(name)
  return path.join(objects, uniqueKey, `${Buffer.concat([half, first(half)]).toString('hex')}.sqlite`)
}

/** False for a database that is missing, or without tables as that of a destroyed sandbox. */
export function hasTables(file: string): boolean {
  const sizeBytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  return sizeBytes > EMPTY_DATABASE_BYTES || (sizeBytes > 0 && !isEmpty(file))
}

/** Suffixes of a database's files, in order of removal. */
const COMPANIONS = ['-wal', '-shm', '']
/** workerd's database of the alarms of a class. */
const ALARMS_FILE = 'metadata.sqlite'

function query(file: string, sql: string): readonly unknown[] {
  const database = new Database(file, { readonly: true })
  try {
    return database.query(sql).values().flat()
  } finally {
    database.close()
  }
}

/** Ids of objects with an alarm. */
function findAlarms(folder: string): ReadonlySet<unknown> {
  const file = path.join(folder, ALARMS_FILE)
  return new Set(existsSync(file) ? query(file, 'SELECT actor_id FROM _cf_ALARM') : [])
}

function isEmpty(file: string): boolean {
  try {
    // workerd has tables of its own, for the alarm.
    return query(file, "SELECT name FROM sqlite_master WHERE name NOT GLOB '_cf_*'").length === 0
  } catch {
    // Not a database.
    return false
  }
}

/**
 * Removes empty databases, which destroyed sandboxes leave, and returns how many. An object without a database starts with an
 * empty one, so nothing is lost. `forget` is called before. Must not run while workerd has them open.
 */
export function removeEmptyObjects(folder: string, forget: (files: readonly string[]) => void): number {
  if (!existsSync(folder)) return 0
  const alarms = findAlarms(folder)
  const empty = readdirSync(folder).flatMap((name) => {
    const id = OBJECT_FILE.exec(name)?.[1]
    const file = path.join(folder, name)
    return id === undefined || alarms.has(id) || !isEmpty(file) ? [] : [file]
  })
  if (empty.length > 0) forget(empty)
  for (const file of empty) for (const ending of COMPANIONS) rmSync(`${file}${ending}`, { force: true })
  return empty.length
}
