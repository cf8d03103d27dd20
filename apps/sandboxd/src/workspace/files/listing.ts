import { pathFromBytes, pathToBytes } from '@sandwire/protocol'
import { AT_SYMLINK_NOFOLLOW, O_PATH } from '../beneath/constants.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import { parsePath } from '../beneath/path.ts'
import type { Root } from '../beneath/root.ts'
import { readStat, STATX_BYTES } from '../beneath/statx.ts'
import { closeFd, statAt, statFd } from '../beneath/system-calls.ts'
import type { Entry, FileStat, Listing, OpenFile } from '../files.ts'
import { type ByteName, byteName, bytesOfName, cName, eachName, type Ground, type Job } from './context.ts'

/** What is at a path: of a link itself, with what it leads to, unless it is to be followed. */
export function stat({ root }: Ground, path: string, followsLink: boolean): FileStat & Pick<Entry, 'target'> {
  using name = root.openName(path, 'read', followsLink)
  const found = statOpen(name.fd, path)
  return found.kind === 'link' ? { ...found, ...readTarget(root, parsePath(path).names) } : found
}

/** What an open file is. */
export function statOpen(fd: number, path: string): FileStat {
  const into = new Uint8Array(STATX_BYTES)
  const result = statFd(fd, into)
  if (result < 0) throw fileError('read', path, result)
  return readStat(into)
}

/**
 * What is known of a name in an open folder; undefined when it is gone, or nobody may know. `stat` is room for one, used again
 * for each name: to give new memory to the kernel costs more than the call.
 */
export function readEntry(folder: number, name: ByteName, stat: Uint8Array): Entry | undefined {
  if (statAt(folder, cName(name), AT_SYMLINK_NOFOLLOW, stat) < 0) return undefined
  return { name: pathFromBytes(bytesOfName(name)), ...readStat(stat) }
}

/** What the link at a path leads to, when that is a file or a folder inside. */
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
  /** Only names behind this one. */
  readonly after?: string
}

/** How many entries are looked at between two pauses. */
const BATCH = 64

/** The names in a folder in the order of their bytes, with what is known of each. */
export function* list(ground: Ground, path: string, limits: ListLimits): Job<Listing> {
  const { root, now } = ground
  using folder = root.openFolder(path, 'list')
  const endMs = now() + limits.timeMs
  const after = byteName(pathToBytes(limits.after ?? '') ?? new Uint8Array(0))
  const smallest = new Smallest(limits.maxEntries)
  let isLate = false
  const visit = (name: string): boolean => {
    if (name > after) smallest.add(name)
    isLate = now() > endMs
    return !isLate
  }
  yield* eachName(folder.fd, visit, { doing: 'list', path })
  const { names, hasMore } = smallest.take()
  const entries: Entry[] = []
  const stat = new Uint8Array(STATX_BYTES)
  const { names: above } = parsePath(path)
  for (const [index, name] of names.entries()) {
    if (index % BATCH === 0) yield undefined
    isLate ||= now() > endMs
    // One at least, so that whoever asks for what comes after gets on.
    if (isLate && entries.length > 0) return { entries, truncated: true }
    const entry = readEntry(folder.fd, name, stat)
    if (entry === undefined) continue
    entries.push(
      entry.kind === 'link' ? { ...entry, ...readTarget(root, [...above, bytesOfName(name)]) } : entry,
    )
  }
  return { entries, truncated: hasMore || isLate }
}

/** Keeps the first names of a folder in the order of their bytes, and never many more than are wanted. */
class Smallest {
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

  /** Those that are wanted, and whether there were more. */
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

/** Opens a regular file to read it. Anything else is refused after it was opened, when it can no longer be swapped. */
export function open({ root }: Ground, path: string): OpenFile {
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

/** Opens a folder, for something to be started in it or to watch it. */
export function openFolder({ root }: Ground, path: string): number {
  using folder = root.openFolder(path, 'open')
  return folder.release()
}
