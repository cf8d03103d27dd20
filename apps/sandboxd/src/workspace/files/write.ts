import { SandwireError } from '@sandwire/protocol'
import {
  AT_FDCWD,
  AT_SYMLINK_FOLLOW,
  EEXIST,
  EINVAL,
  EISDIR,
  ENOENT,
  EOPNOTSUPP,
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOFOLLOW,
  O_PATH,
  O_RDONLY,
  O_RDWR,
  O_TMPFILE,
} from '../beneath/constants.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import { parsePath, splitLast } from '../beneath/path.ts'
import { type Root, type Slot, statSlot } from '../beneath/root.ts'
import { readStat } from '../beneath/statx.ts'
import {
  chmodFd,
  cString,
  Descriptor,
  linkAt,
  makeFolderAt,
  openAt,
  renameAt,
  setTimeFd,
  unlinkAt,
} from '../beneath/system-calls.ts'
import type { FileStat, NewFile, PendingFile } from '../files.ts'
import { checkCondition, type Ground, hiddenName } from './context.ts'
import { statOpen } from './listing.ts'

/** What files are made with, less the umask. */
const FILE_MODE = 0o666
/** Nobody else reads a file before it is whole. */
const PENDING_MODE = 0o600
/** More files than this are not written at a time. */
const MAX_PENDING = 1_024
/** Where the folder cannot hold a file without a name. */
const NO_TMPFILE: readonly number[] = [-EOPNOTSUPP, -EISDIR, -EINVAL, -ENOENT]

interface Pending {
  readonly slot: Slot
  readonly fd: number
  readonly file: NewFile
  /** Undefined for a file without a name, which is gone with its descriptor, however this process ends. */
  readonly hidden: Uint8Array | undefined
}

/** A file that took its place. */
export interface Committed {
  readonly stat: FileStat
  /** Its folder, open for whoever puts the change on the disk; -1 when nobody may open it. */
  readonly folder: number
}

/**
 * Files that are being written. One takes its place in a single step: what was there before is replaced, with its mode but
 * without its owner, other names or extended attributes. Conditions are looked at right before that step, and nothing else of
 * this process comes between, because all changes are made by this one thread. Another process can: what it writes there
 * between the look and the step, some microseconds, is lost.
 */
export class PendingFiles {
  readonly #ground: Ground
  readonly #pending = new Map<number, Pending>()

  constructor(ground: Ground) {
    this.#ground = ground
  }

  /** `id` is the caller's, and new. */
  create(id: number, path: string, file: NewFile): PendingFile {
    if (this.#pending.size >= MAX_PENDING)
      throw new SandwireError('rate_limited', 'Cannot write more files at a time')
    const slot = this.#openSlot(path, file)
    try {
      checkReplaced(slot, file)
      const { fd, hidden } = openPending(slot)
      this.#pending.set(id, { slot, fd, file, hidden })
      return { fd, id }
    } catch (error) {
      slot[Symbol.dispose]()
      throw error
    }
  }

  /** The file is closed by whoever writes it. */
  commit(id: number): Committed {
    const pending = this.#take(id)
    using slot = pending.slot
    try {
      finish(pending, this.#ground.umask)
    } catch (error) {
      if (pending.hidden !== undefined) unlinkAt(slot.folder, pending.hidden, 0)
      throw error
    }
    const folder = openAt(slot.folder, cString(Buffer.from('.')), O_RDONLY | O_DIRECTORY)
    return { stat: statOpen(pending.fd, slot.path), folder: Math.max(folder, -1) }
  }

  discard(id: number): void {
    if (!this.#pending.has(id)) return
    const { slot, hidden } = this.#take(id)
    if (hidden !== undefined) unlinkAt(slot.folder, hidden, 0)
    slot[Symbol.dispose]()
  }

  #take(id: number): Pending {
    const pending = this.#pending.get(id)
    if (pending === undefined) throw new SandwireError('internal', 'Cannot finish the file: it is not open')
    this.#pending.delete(id)
    return pending
  }

  #openSlot(path: string, { makesParents, followsLink }: NewFile): Slot {
    const { root } = this.#ground
    if (makesParents === true) {
      const above = splitLast(parsePath(path))
      if (above !== undefined) ensureFolder(root, path, above.names)[Symbol.dispose]()
    }
    return followsLink === true ? root.openSlotBehindLinks(path, 'write') : root.openSlot(path, 'write')
  }
}

/** What a file would replace; throws when it must not. */
function checkReplaced(slot: Slot, file: NewFile): FileStat | undefined {
  const found = statSlot(slot, 'write')
  checkCondition(file, found, { doing: 'write', path: slot.path })
  if (found === undefined) return undefined
  const stat = readStat(found)
  if (stat.kind === 'folder') throw refusal('is_a_folder', 'write', slot.path, 'a folder is there')
  if (stat.kind === 'special')
    throw refusal('special_file', 'write', slot.path, 'neither a file nor a folder')
  return stat
}

function openPending(slot: Slot): { readonly fd: number; readonly hidden: Uint8Array | undefined } {
  const unnamed = openAt(slot.folder, cString(Buffer.from('.')), O_TMPFILE | O_RDWR, PENDING_MODE)
  if (unnamed >= 0) return { fd: unnamed, hidden: undefined }
  if (!NO_TMPFILE.includes(unnamed)) throw fileError('write', slot.path, unnamed)
  const hidden = hiddenName()
  const fd = openAt(slot.folder, hidden, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, PENDING_MODE)
  if (fd < 0) throw fileError('write', slot.path, fd)
  return { fd, hidden }
}

function finish({ slot, fd, file, hidden }: Pending, umask: number): void {
  const replaced = checkReplaced(slot, file)
  const mode = file.mode ?? (replaced?.kind === 'file' ? replaced.mode : FILE_MODE & ~umask)
  must(chmodFd(fd, mode & 0o777), slot)
  if (file.mtimeNs !== undefined) must(setTimeFd(fd, BigInt(file.mtimeNs)), slot)
  if (hidden === undefined) placeUnnamed(slot, fd, file)
  else must(renameAt({ folder: slot.folder, name: hidden }, slot, howFor(file)), slot)
}

function howFor({ ifAbsent }: NewFile): 'beside' | 'over' {
  return ifAbsent === true ? 'beside' : 'over'
}

/** Gives a file without a name its own, or first a hidden one where another file has to go. */
function placeUnnamed(slot: Slot, fd: number, file: NewFile): void {
  const from = { folder: AT_FDCWD, name: cString(Buffer.from(`/proc/self/fd/${fd}`)) }
  const linked = linkAt(from, slot, AT_SYMLINK_FOLLOW)
  if (linked !== -EEXIST || file.ifAbsent === true) return must(linked, slot)
  const hidden = { folder: slot.folder, name: hiddenName() }
  must(linkAt(from, hidden, AT_SYMLINK_FOLLOW), slot)
  const moved = renameAt(hidden, slot, 'over')
  if (moved < 0) unlinkAt(hidden.folder, hidden.name, 0)
  must(moved, slot)
}

function must(result: number, slot: Slot): void {
  if (result < 0) throw fileError('write', slot.path, result)
}

/** What folders are made with, less the umask. */
const FOLDER_MODE = 0o777

export interface FolderOptions {
  readonly makesParents: boolean
  readonly mode?: number
}

/** Makes a folder; one that is there already is enough when parents are made as well. */
export function makeFolder({ root }: Ground, path: string, options: FolderOptions): void {
  const mode = (options.mode ?? FOLDER_MODE) & 0o777
  if (options.makesParents) {
    using _ = ensureFolder(root, path, parsePath(path).names, mode)
    return
  }
  using slot = root.openSlot(path, 'make')
  const result = makeFolderAt(slot.folder, slot.name, mode)
  if (result < 0) throw fileError('make', path, result)
}

/** Makes what is missing of the folders of a path, and opens the last one. */
function ensureFolder(
  root: Root,
  path: string,
  names: readonly Uint8Array[],
  mode = FOLDER_MODE,
): Descriptor {
  const whole = root.tryOpen(names, O_PATH | O_DIRECTORY)
  if (whole >= 0) return new Descriptor(whole)
  const last = names.at(-1)
  if (whole !== -ENOENT || last === undefined) throw fileError('make', path, whole)
  using parent = ensureFolder(root, path, names.slice(0, -1))
  const made = makeFolderAt(parent.fd, cString(last), mode)
  if (made < 0 && made !== -EEXIST) throw fileError('make', path, made)
  const fd = openAt(parent.fd, cString(last), O_PATH | O_DIRECTORY | O_NOFOLLOW)
  if (fd < 0) throw fileError('make', path, fd)
  return new Descriptor(fd)
}
