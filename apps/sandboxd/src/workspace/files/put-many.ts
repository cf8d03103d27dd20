import { type ErrorCode, pathFromBytes, pathToBytes, SandwireError } from '@sandwire/protocol'
import {
  chmodFd,
  cString,
  Descriptor,
  linkAt,
  makeFolderAt,
  openAt,
  type EntryRef,
  renameAt,
  setTimeAt,
  setTimeFd,
  symlinkAt,
  unlinkAt,
  writeFd,
} from '../beneath/system-calls.ts'
import {
  AT_FDCWD,
  AT_SYMLINK_FOLLOW,
  AT_SYMLINK_NOFOLLOW,
  EACCES,
  EEXIST,
  EISDIR,
  ENOENT,
  ENOSPC,
  ENOTDIR,
  ENOTEMPTY,
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_PATH,
  O_RDONLY,
  O_WRONLY,
} from '../beneath/constants.ts'
import { describeErrno, fileError } from '../beneath/file-error.ts'
import { findPathProblem, isParent, parsePath } from '../beneath/path.ts'
import { FolderCursor } from '../beneath/folder-cursor.ts'
import type { OpenPut, Put, Refusal } from '../transfer/transfer-files.ts'
import { type FileContext, hiddenName, type Job } from './context.ts'
import { statOpen } from './listing.ts'

const NEW_FILE = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
/** No other user reads a file before it is complete. */
const PENDING_MODE = 0o600
/** Mode of created folders until their final mode is set. */
const FOLDER_MODE = 0o777
/** Mode bits that an archive may set: no setuid, setgid or sticky bit. */
const PERMISSIONS = 0o777
/** Items processed between two pauses. */
const BATCH = 16
const NOTHING = new Uint8Array(0)
const FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK
/** Owner permissions that a folder needs while it is filled. */
const WORKABLE = 0o700

/** Opens the folder of an item. Throws when something blocks the path or it leads outside. */
function openEntry(cursor: FolderCursor, path: string, makesMissing = true): EntryRef {
  const problem = findPathProblem(path)
  if (problem !== undefined) throw new SandwireError('path_refused', problem)
  const { names } = parsePath(path)
  const last = names.at(-1)
  if (last === undefined || names.some(isParent))
    throw new SandwireError('path_refused', 'it does not name a file')
  const folder = cursor.enter(names.slice(0, -1), makesMissing)
  if (folder < 0) throw whyOf(folder === -ENOTDIR ? 'not_a_folder' : undefined, path, folder)
  return { folder, name: cString(last) }
}

function whyOf(blocked: 'not_a_folder' | undefined, path: string, errno: number): SandwireError {
  if (blocked !== undefined) return new SandwireError('not_a_folder', 'a parent is not a folder')
  if (errno === -EISDIR || errno === -ENOTEMPTY || errno === -EEXIST)
    return new SandwireError('is_a_folder', 'a folder has this name')
  const [code, reason] = describeErrno(errno)
  return isFatal(code) ? fileError('write', path, errno) : new SandwireError(code, reason)
}

/** Errors that end the request; others concern one item, and their message is the reason alone. */
function isFatal(code: ErrorCode): boolean {
  return code === 'disk_full' || code === 'internal'
}

function must(result: number, path: string): number {
  if (result < 0) throw whyOf(undefined, path, result)
  return result
}

/** Opens a new file under a temporary name in the folder of a path. */
export function openPut({ root }: FileContext, folder: string, path: string): OpenPut {
  using cursor = new FolderCursor(root.openFolder(folder, 'write'))
  const entry = openEntry(cursor, path)
  const hidden = hiddenName()
  const fd = must(openAt(entry.folder, hidden, NEW_FILE, PENDING_MODE), path)
  return { fd, hidden: pathFromBytes(hidden.subarray(0, -1)) }
}

/** Writes many items into a folder and reports for each why it failed. A full disk aborts. */
export function* putMany(
  { root }: FileContext,
  folder: string,
  { items, bytes }: { readonly items: readonly Put[]; readonly bytes: Uint8Array },
): Job<(Refusal | undefined)[]> {
  using cursor = new FolderCursor(root.openFolder(folder, 'write'))
  const refusals: (Refusal | undefined)[] = []
  for (const [index, item] of items.entries()) {
    if (index % BATCH === BATCH - 1) yield undefined
    refusals.push(attempt(() => put(cursor, item, bytes)))
  }
  return refusals
}

function attempt(action: () => void): Refusal | undefined {
  try {
    action()
    return undefined
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (isFatal(error.code)) throw error
    return { code: error.code, why: error.message }
  }
}

function put(cursor: FolderCursor, item: Put, bytes: Uint8Array): void {
  switch (item.kind) {
    case 'folder':
      return putFolder(openEntry(cursor, item.path), item.path)
    case 'file':
      return putFile(openEntry(cursor, item.path), item, bytes.subarray(item.from, item.to))
    case 'written':
      return putWritten(openEntry(cursor, item.path), item)
    case 'dropped':
      unlinkAt(openEntry(cursor, item.path).folder, hiddenOf(item.file), 0)
      return
    case 'link':
      return putLink(openEntry(cursor, item.path), item)
    case 'hard-link':
      return putHardLink(cursor, item)
    case 'settled':
      return settle(openEntry(cursor, item.path, false), item)
  }
}

function hiddenOf({ hidden }: OpenPut): Uint8Array {
  return cString(pathToBytes(hidden) ?? NOTHING)
}

function putFolder(entry: EntryRef, path: string): void {
  const made = makeFolderAt(entry.folder, entry.name, FOLDER_MODE)
  if (made >= 0) return
  if (made !== -EEXIST) throw whyOf(undefined, path, made)
  const fd = openAt(entry.folder, entry.name, FOLDER_FLAGS)
  // It cannot be listed; whether it can be written shows with the first item.
  if (fd === -EACCES) return
  if (fd < 0) throw whyOf('not_a_folder', path, fd)
  using folder = new Descriptor(fd)
  const { mode } = statOpen(folder.fd, path)
  // Fails for another user's folder, which stays as it is.
  if ((mode & WORKABLE) !== WORKABLE) chmodFd(folder.fd, (mode & PERMISSIONS) | WORKABLE)
}

function putFile(
  entry: EntryRef,
  { path, mode, mtimeNs }: Extract<Put, { kind: 'file' }>,
  bytes: Uint8Array,
): void {
  const hidden = { folder: entry.folder, name: hiddenName() }
  using file = new Descriptor(must(openAt(hidden.folder, hidden.name, NEW_FILE, PENDING_MODE), path))
  replaceWith(hidden, entry, path, () => {
    writeAll(file.fd, bytes, path)
    must(chmodFd(file.fd, mode & PERMISSIONS), path)
    must(setTimeFd(file.fd, BigInt(mtimeNs)), path)
  })
}

function writeAll(fd: number, bytes: Uint8Array, path: string): void {
  for (let rest = bytes; rest.length > 0;) {
    const written = must(writeFd(fd, rest), path)
    // A write of 0 bytes without an error means a full disk.
    if (written === 0) throw fileError('write', path, -ENOSPC)
    rest = rest.subarray(written)
  }
}

/** Prepares a temporary file and renames it to its final name; removes it on failure. */
function replaceWith(hidden: EntryRef, entry: EntryRef, path: string, prepare: () => void): void {
  try {
    prepare()
    must(renameAt(hidden, entry, 'over'), path)
  } catch (error) {
    unlinkAt(hidden.folder, hidden.name, 0)
    throw error
  }
}

function putWritten(entry: EntryRef, { file, path, mode, mtimeNs }: Extract<Put, { kind: 'written' }>): void {
  replaceWith({ folder: entry.folder, name: hiddenOf(file) }, entry, path, () => {
    must(chmodFd(file.fd, mode & PERMISSIONS), path)
    must(setTimeFd(file.fd, BigInt(mtimeNs)), path)
  })
}

function putLink(entry: EntryRef, { path, target, mtimeNs }: Extract<Put, { kind: 'link' }>): void {
  const hidden = { folder: entry.folder, name: hiddenName() }
  must(symlinkAt(cString(pathToBytes(target) ?? NOTHING), hidden.folder, hidden.name), path)
  replaceWith(hidden, entry, path, () => {
    // Some file systems store no times for links.
    setTimeAt(hidden.folder, hidden.name, BigInt(mtimeNs), AT_SYMLINK_NOFOLLOW)
  })
}

function putHardLink(cursor: FolderCursor, { path, target }: Extract<Put, { kind: 'hard-link' }>): void {
  const source = openEntry(cursor, target, false)
  using file = new Descriptor(must(openAt(source.folder, source.name, O_PATH | O_NOFOLLOW), target))
  if (statOpen(file.fd, target).kind !== 'file')
    throw new SandwireError('special_file', 'its target is not a file')
  const entry = openEntry(cursor, path)
  const hidden = { folder: entry.folder, name: hiddenName() }
  const from = { folder: AT_FDCWD, name: cString(Buffer.from(`/proc/self/fd/${file.fd}`)) }
  must(linkAt(from, hidden, AT_SYMLINK_FOLLOW), path)
  replaceWith(hidden, entry, path, () => undefined)
  // rename(2) does nothing when both names are the same file, so the temporary name remains.
  unlinkAt(hidden.folder, hidden.name, 0)
}

function settle(entry: EntryRef, { path, mode, mtimeNs }: Extract<Put, { kind: 'settled' }>): void {
  const fd = openAt(entry.folder, entry.name, FOLDER_FLAGS)
  if (fd === -ENOENT || fd === -ENOTDIR) return
  using folder = new Descriptor(must(fd, path))
  must(setTimeFd(folder.fd, BigInt(mtimeNs)), path)
  must(chmodFd(folder.fd, mode & PERMISSIONS), path)
}
