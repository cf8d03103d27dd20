import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
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
