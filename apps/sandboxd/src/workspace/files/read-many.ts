import { SandwireError, pathFromBytes } from '@sandwire/protocol'
import {
  cString,
  Descriptor,
  openAt,
  type EntryRef,
  readFd,
  readLinkAt,
  statAt,
} from '../beneath/system-calls.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import {
  AT_SYMLINK_NOFOLLOW,
  O_DIRECTORY,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
} from '../beneath/constants.ts'
import { isParent, parsePath } from '../beneath/path.ts'
import { readStat, STATX_BYTES } from '../beneath/statx.ts'
import { FolderCursor } from '../beneath/folder-cursor.ts'
import type { FileStat } from '../files.ts'
import type { ManyRead, Read, Refusal } from '../transfer/transfer-files.ts'
import type { FileContext, Job } from './context.ts'
import { statOpen } from './listing.ts'

const FILE_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
const FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK
const HERE = cString(new TextEncoder().encode('.'))
const MAX_TARGET_BYTES = 4096
/** Items read between two pauses. */
const BATCH = 16

/** Contents of several files in one buffer. */
class Collected {
  #bytes: Uint8Array
  #length = 0

  constructor(maxBytes: number) {
    this.#bytes = new Uint8Array(maxBytes)
  }

  /** Reserves this many bytes; undefined when the buffer is full. */
  reserve(sizeBytes: number): Uint8Array | undefined {
    const end = this.#length + sizeBytes
    return end > this.#bytes.length ? undefined : this.#bytes.subarray(this.#length, end)
  }

  /** Keeps the reserved bytes. */
  keep(sizeBytes: number): { readonly from: number; readonly to: number } {
    const from = this.#length
    this.#length += sizeBytes
    return { from, to: this.#length }
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length)
  }
}

/** Reads many files and links of a folder. Stops after the first large file, which is left open, and when the buffer is full. */
export function* readMany(
  { root }: FileContext,
  folder: string,
  { paths, maxBytes }: { readonly paths: readonly string[]; readonly maxBytes: number },
): Job<ManyRead> {
  using cursor = new FolderCursor(root.openFolder(folder, 'read'))
  const reads: Read[] = []
  const collected = new Collected(maxBytes)
  for (const [index, path] of paths.entries()) {
    if (index % BATCH === BATCH - 1) yield undefined
    const read = attempt(() => readOne(cursor, path, { maxBytes, collected }))
    if (read === 'full') break
    reads.push(read)
    if (read.kind === 'open') break
  }
  return { reads, bytes: collected.take() }
}

function attempt(action: () => Read | 'full'): Read | 'full' {
  try {
    return action()
  } catch (caught) {
    return { kind: 'refused', refusal: toRefusal(caught) }
  }
}

function toRefusal(caught: unknown): Refusal {
  const { code, message } = SandwireError.from(caught)
  return { code, why: message }
}

interface ReadLimits {
  readonly maxBytes: number
  readonly collected: Collected
}

function readOne(cursor: FolderCursor, path: string, limits: ReadLimits): Read | 'full' {
  const { names } = parsePath(path)
  const last = names.at(-1)
  if (last === undefined || names.some(isParent))
    throw refusal('path_refused', 'read', path, 'it does not name a file')
  const folder = cursor.enter(names.slice(0, -1), false)
  if (folder < 0) throw fileError('read', path, folder)
  const entry = { folder, name: cString(last) }
  const stat = statEntry(entry, path)
  switch (stat.kind) {
    case 'file':
      return readFile(entry, path, limits)
    case 'folder':
      return { kind: 'folder', stat, ...closedTo(entry, path) }
    case 'link':
      return { kind: 'link', target: readTarget(entry, path), stat }
    case 'special':
      throw refusal('special_file', 'read', path, 'neither a file nor a folder')
  }
}

function statEntry({ folder, name }: EntryRef, path: string): FileStat {
  const into = new Uint8Array(STATX_BYTES)
  const result = statAt(folder, name, AT_SYMLINK_NOFOLLOW, into)
  if (result < 0) throw fileError('read', path, result)
  return readStat(into)
}

/** Why a folder cannot be listed or searched, if so. */
function closedTo({ folder, name }: EntryRef, path: string): { readonly refusal?: Refusal } {
  const fd = openAt(folder, name, FOLDER_FLAGS)
  if (fd < 0) return { refusal: toRefusal(fileError('read', path, fd)) }
  using inner = new Descriptor(fd)
  const result = statAt(inner.fd, HERE, AT_SYMLINK_NOFOLLOW, new Uint8Array(STATX_BYTES))
  return result < 0 ? { refusal: toRefusal(fileError('read', path, result)) } : {}
}

function readTarget({ folder, name }: EntryRef, path: string): string {
  const into = new Uint8Array(MAX_TARGET_BYTES)
  const size = readLinkAt(folder, name, into)
  if (size < 0) throw fileError('read', path, size)
  return pathFromBytes(into.subarray(0, size))
}

/** Returns `full` when it must wait for the next call. */
function readFile(
  { folder, name }: EntryRef,
  path: string,
  { maxBytes, collected }: ReadLimits,
): Read | 'full' {
  const fd = openAt(folder, name, FILE_FLAGS)
  if (fd < 0) throw fileError('read', path, fd)
  using file = new Descriptor(fd)
  const stat = statOpen(file.fd, path)
  // It was replaced a moment ago.
  if (stat.kind !== 'file') throw refusal('special_file', 'read', path, 'neither a file nor a folder')
  if (stat.sizeBytes > maxBytes) return { kind: 'open', fd: file.release(), stat }
  const bytes = collected.reserve(stat.sizeBytes)
  if (bytes === undefined) return 'full'
  let filled = 0
  while (filled < bytes.length) {
    const count = readFd(file.fd, bytes.subarray(filled))
    if (count < 0) throw fileError('read', path, count)
    if (count === 0) break
    filled += count
  }
  if (filled < bytes.length) throw refusal('file_changed', 'read', path, 'it was truncated while it was read')
  const now = statOpen(file.fd, path)
  const isChanged = now.mtimeNs !== stat.mtimeNs || now.sizeBytes !== stat.sizeBytes
  return { kind: 'file', stat, isChanged, ...collected.keep(bytes.length) }
}
