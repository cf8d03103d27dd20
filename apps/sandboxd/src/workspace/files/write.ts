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
import { checkCondition, type FileContext, hiddenName } from './context.ts'
import { statOpen } from './listing.ts'

/** Mode of new files, less the umask. */
const FILE_MODE = 0o666
/** No other user reads a file before it is complete. */
const PENDING_MODE = 0o600
/** Files that can be written at a time. */
const MAX_PENDING = 1_024
/** Errors of file systems without O_TMPFILE. */
const NO_TMPFILE: readonly number[] = [-EOPNOTSUPP, -EISDIR, -EINVAL, -ENOENT]

interface Pending {
  readonly slot: Slot
  readonly fd: number
  readonly file: NewFile
  /** Undefined for an unnamed file, which the kernel removes with its descriptor. */
  readonly hidden: Uint8Array | undefined
}

/** A file that was moved into place. */
export interface Committed {
  readonly stat: FileStat
  /** Its folder, open for syncing; -1 when it cannot be opened. */
  readonly folder: number
}

/**
 * Files that are being written. A commit replaces the target atomically and keeps its mode, but not its owner, hard links or
 * extended attributes. Preconditions are checked right before; no other change of sandboxd comes between, because one thread
 * makes all changes. A change by another process within those microseconds is lost.
 */
export class PendingFiles {
  readonly #context: FileContext
  readonly #openUnnamed: typeof openUnnamed
  readonly #pending = new Map<number, Pending>()

  /** `open` opens an unnamed file in a folder; tests replace it by one that fails as on file systems without O_TMPFILE. */
  constructor(context: FileContext, open = openUnnamed) {
    this.#context = context
    this.#openUnnamed = open
  }

  /** `id` is chosen by the caller and must be unused. */
  create(id: number, path: string, file: NewFile): PendingFile {
    if (this.#pending.size >= MAX_PENDING)
      throw new SandwireError('rate_limited', 'Cannot write the file: too many files are being written')
    const slot = this.#openSlot(path, file)
    try {
      checkReplaced(slot, file)
      const { fd, hidden } = openPending(slot, this.#openUnnamed)
      this.#pending.set(id, { slot, fd, file, hidden })
      return { fd, id }
    } catch (error) {
      slot[Symbol.dispose]()
      throw error
    }
  }

  /** The writer closes the file. */
  commit(id: number): Committed {
    const pending = this.#take(id)
    using slot = pending.slot
    try {
      finish(pending, this.#context.umask)
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
    if (pending === undefined) throw new SandwireError('internal', 'Cannot write the file: it is not open')
    this.#pending.delete(id)
    return pending
  }

  #openSlot(path: string, { makesParents, followsLink }: NewFile): Slot {
    const { root } = this.#context
    if (makesParents === true) {
      const above = splitLast(parsePath(path))
      if (above !== undefined) ensureFolder(root, path, above.names)[Symbol.dispose]()
    }
    return followsLink === true ? root.openSlotFollowingLinks(path, 'write') : root.openSlot(path, 'write')
  }
}

/** The file that would be replaced; throws when that is not allowed. */
function checkReplaced(slot: Slot, file: NewFile): FileStat | undefined {
  const found = statSlot(slot, 'write')
  checkCondition(file, found, { action: 'write', path: slot.path })
  if (found === undefined) return undefined
  const stat = readStat(found)
  if (stat.kind === 'folder') throw refusal('is_a_folder', 'write', slot.path, 'it is a folder')
  if (stat.kind === 'special')
    throw refusal('special_file', 'write', slot.path, 'neither a file nor a folder')
  return stat
}

/** Opens an unnamed file; returns the negated errno when that fails. */
function openUnnamed(folder: number): number {
  return openAt(folder, cString(Buffer.from('.')), O_TMPFILE | O_RDWR, PENDING_MODE)
}

function openPending(
  slot: Slot,
  open: typeof openUnnamed,
): { readonly fd: number; readonly hidden: Uint8Array | undefined } {
  const unnamed = open(slot.folder)
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

/** Links an unnamed file to its name, or to a temporary name first when it replaces another file. */
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

/** Mode of new folders, less the umask. */
const FOLDER_MODE = 0o777

export interface FolderOptions {
  readonly makesParents: boolean
  readonly mode?: number
}

/** Creates a folder. An existing one is accepted when parents are created as well. */
export function makeFolder({ root }: FileContext, path: string, options: FolderOptions): void {
  const mode = (options.mode ?? FOLDER_MODE) & 0o777
  if (options.makesParents) {
    using _ = ensureFolder(root, path, parsePath(path).names, mode)
    return
  }
  using slot = root.openSlot(path, 'make')
  const result = makeFolderAt(slot.folder, slot.name, mode)
  if (result < 0) throw fileError('make', path, result)
}

/** Creates missing folders of a path and opens the last one. */
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
