import { pathFromBytes, pathToBytes } from '@sandwire/protocol'
import { AT_SYMLINK_NOFOLLOW, O_PATH } from '../beneath/constants.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import { parsePath } from '../beneath/path.ts'
import type { Root } from '../beneath/root.ts'
import { readStat, STATX_BYTES } from '../beneath/statx.ts'
import { closeFd, statAt, statFd } from '../beneath/system-calls.ts'
import type { Entry, FileStat, Listing, OpenFile } from '../files.ts'
import {
  type ByteName,
  byteName,
  bytesOfName,
  cName,
  eachName,
  type FileContext,
  type Job,
} from './context.ts'

/** Reads the status of a path; of a link itself, with the kind of its target, unless it is followed. */
export function stat(
  { root }: FileContext,
  path: string,
  followsLink: boolean,
): FileStat & Pick<Entry, 'target'> {
  using name = root.openName(path, 'read', followsLink)
  const found = statOpen(name.fd, path)
  return found.kind === 'link' ? { ...found, ...readTarget(root, parsePath(path).names) } : found
}

/** Reads the status of an open file. */
export function statOpen(fd: number, path: string): FileStat {
  const into = new Uint8Array(STATX_BYTES)
  const result = statFd(fd, into)
  if (result < 0) throw fileError('read', path, result)
  return readStat(into)
}

/**
 * Reads an entry of an open folder; undefined when it is gone or not accessible. `stat` is a buffer that is reused: allocating
 * one costs more than the call.
 */
export function readEntry(folder: number, name: ByteName, stat: Uint8Array): Entry | undefined {
  if (statAt(folder, cName(name), AT_SYMLINK_NOFOLLOW, stat) < 0) return undefined
  return { name: pathFromBytes(bytesOfName(name)), ...readStat(stat) }
}

/** The kind of a link's target, when it is a file or folder in the workspace. */
export function readTarget(root: Root, names: readonly Uint8Array[]): Pick<Entry, 'target'> {
  const fd = root.tryOpen(names, O_PATH)
  if (fd < 0) return {}
  const stat = new Uint8Array(STATX_BYTES)
  const result = statFd(fd, stat)
  closeFd(fd)
  if (result < 0) return {}
  const { kind } = readStat(stat)
  return kind === 'file' || kind === 'folder' ? { target: kind } : {}
}

export interface ListLimits {
  readonly maxEntries: number
  readonly timeMs: number
  /** Only names after this one. */
  readonly after?: string
}

/** Entries read between two pauses. */
const BATCH = 64

/** Lists a folder, sorted by the bytes of the names. */
export function* list(context: FileContext, path: string, limits: ListLimits): Job<Listing> {
  const { root, now } = context
  using folder = root.openFolder(path, 'list')
  const endMs = now() + limits.timeMs
  const after = byteName(pathToBytes(limits.after ?? '') ?? new Uint8Array(0))
  const smallest = new SmallestNames(limits.maxEntries)
  let isLate = false
  const visit = (name: string): boolean => {
    if (name > after) smallest.add(name)
    isLate = now() > endMs
    return !isLate
  }
  yield* eachName(folder.fd, visit, { action: 'list', path })
  const { names, hasMore } = smallest.take()
  const entries: Entry[] = []
  const stat = new Uint8Array(STATX_BYTES)
  const { names: above } = parsePath(path)
  for (const [index, name] of names.entries()) {
    if (index % BATCH === 0) yield undefined
    isLate ||= now() > endMs
    // At least one, so that a client that continues after it makes progress.
    if (isLate && entries.length > 0) return { entries, truncated: true }
    const entry = readEntry(folder.fd, name, stat)
    if (entry === undefined) continue
    entries.push(
      entry.kind === 'link' ? { ...entry, ...readTarget(root, [...above, bytesOfName(name)]) } : entry,
    )
  }
  return { entries, truncated: hasMore || isLate }
}

/** Keeps the first `wanted` names in byte order, without holding many more in memory. */
class SmallestNames {
  readonly #wanted: number
  #names: ByteName[] = []
  #hasDropped = false

  constructor(wanted: number) {
    this.#wanted = wanted
  }

  add(name: ByteName): void {
    this.#names.push(name)
    if (this.#names.length >= this.#wanted * 2 + 1024) this.#cut()
  }

  /** The kept names, and whether others were dropped. */
  take(): { readonly names: readonly ByteName[]; readonly hasMore: boolean } {
    this.#cut()
    return { names: this.#names, hasMore: this.#hasDropped }
  }

  #cut(): void {
    this.#names.sort()
    if (this.#names.length <= this.#wanted) return
    this.#names.length = this.#wanted
    this.#hasDropped = true
  }
}

/** Opens a regular file for reading. Its kind is checked after opening, when it can no longer be replaced. */
export function open({ root }: FileContext, path: string): OpenFile {
  using file = root.openToRead(path, 'read')
  const stat = statOpen(file.fd, path)
  switch (stat.kind) {
    case 'file':
      return { fd: file.release(), stat }
    case 'folder':
      throw refusal('is_a_folder', 'read', path, 'it is a folder')
    case 'link':
    case 'special':
      throw refusal('special_file', 'read', path, 'neither a file nor a folder')
  }
}

/** Opens a folder, to start a process in it or to watch it. */
export function openFolder({ root }: FileContext, path: string): number {
  using folder = root.openFolder(path, 'open')
  return folder.release()
}
