import { pathToBytes, SandwireError, pathFromBytes } from '@sandwire/protocol'
import {
  chmodFd,
  cString,
  Descriptor,
  linkAt,
  makeFolderAt,
  openAt,
  type Place,
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
import { fileError } from '../beneath/file-error.ts'
import { isParent, parsePath } from '../beneath/path.ts'
import { Trail } from '../beneath/folder-cursor.ts'
import type { OpenPut, Put, Refusal } from '../transfer/transfer-files.ts'
import { type Ground, hiddenName, type Job } from './context.ts'
import { statOpen } from './listing.ts'

const NEW_FILE = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
/** Nobody else reads a file before it is whole. */
const PENDING_MODE = 0o600
/** Folders are made so that things can be put into them, whatever their mode will be. */
const FOLDER_MODE = 0o777
/** Never more than what permits reading, writing and entering. */
const PERMISSIONS = 0o777
/** Items done between two pauses. */
const BATCH = 16
const NOTHING = new Uint8Array(0)
const FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK
/** What a folder allows its owner while things are put into it. */
const WORKABLE = 0o700

/** Goes to where an item belongs. Throws when something is in the way, or the path leads elsewhere. */
function placeOf(trail: Trail, path: string, makesMissing = true): Place {
  const { names } = parsePath(path)
  const last = names.at(-1)
  if (last === undefined || names.some(isParent))
    throw new SandwireError('path_refused', 'it has no name of its own')
  const folder = trail.enter(names.slice(0, -1), makesMissing)
  if (folder < 0) throw whyOf(folder === -ENOTDIR ? 'not_a_folder' : undefined, path, folder)
  return { folder, name: cString(last) }
}

function whyOf(blocked: 'not_a_folder' | undefined, path: string, errno: number): SandwireError {
  if (blocked !== undefined)
    return new SandwireError('not_a_folder', 'something that is no folder is in its way')
  if (errno === -EISDIR || errno === -ENOTEMPTY || errno === -EEXIST)
    return new SandwireError('is_a_folder', 'a folder is in its place')
  return fileError('write', path, errno)
}

function must(result: number, path: string): number {
  if (result < 0) throw whyOf(undefined, path, result)
  return result
}

/** Opens a new file beside the place of a path. */
export function openPut({ root }: Ground, folder: string, path: string): OpenPut {
  using trail = new Trail(root.openFolder(folder, 'write'))
  const place = placeOf(trail, path)
  const hidden = hiddenName()
  const fd = must(openAt(place.folder, hidden, NEW_FILE, PENDING_MODE), path)
  return { fd, hidden: pathFromBytes(hidden.subarray(0, -1)) }
}

/** Puts many things into a folder, and says of each why it was not done. A full disk ends it. */
export function* putMany(
  { root }: Ground,
  folder: string,
  { items, bytes }: { readonly items: readonly Put[]; readonly bytes: Uint8Array },
): Job<(Refusal | undefined)[]> {
  using trail = new Trail(root.openFolder(folder, 'write'))
  const refusals: (Refusal | undefined)[] = []
  for (const [index, item] of items.entries()) {
    if (index % BATCH === BATCH - 1) yield undefined
    refusals.push(attempt(() => put(trail, item, bytes)))
  }
  return refusals
}

function attempt(action: () => void): Refusal | undefined {
  try {
    action()
    return undefined
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (error.code === 'disk_full' || error.code === 'internal') throw error
    return { code: error.code, why: error.message.replace(/^Cannot [a-z ]+ "(?:[^"\\]|\\.)*…?": /u, '') }
  }
}

function put(trail: Trail, item: Put, bytes: Uint8Array): void {
  switch (item.is) {
    case 'folder':
      return putFolder(placeOf(trail, item.path), item.path)
    case 'file':
      return putFile(placeOf(trail, item.path), item, bytes.subarray(item.from, item.to))
    case 'written':
      return putWritten(placeOf(trail, item.path), item)
    case 'dropped':
      unlinkAt(placeOf(trail, item.path).folder, hiddenOf(item.file), 0)
      return
    case 'link':
      return putLink(placeOf(trail, item.path), item)
    case 'hard-link':
      return putHardLink(trail, item)
    case 'settled':
      return settle(placeOf(trail, item.path, false), item)
  }
}

function hiddenOf({ hidden }: OpenPut): Uint8Array {
  return cString(pathToBytes(hidden) ?? NOTHING)
}

function putFolder(place: Place, path: string): void {
  const made = makeFolderAt(place.folder, place.name, FOLDER_MODE)
  if (made >= 0) return
  if (made !== -EEXIST) throw whyOf(undefined, path, made)
  const fd = openAt(place.folder, place.name, FOLDER_FLAGS)
  // Nobody may look into it; whether things can be put there is seen then.
  if (fd === -EACCES) return
  if (fd < 0) throw whyOf('not_a_folder', path, fd)
  using folder = new Descriptor(fd)
  const { mode } = statOpen(folder.fd, path)
  // Somebody else's is left as it is.
  if ((mode & WORKABLE) !== WORKABLE) chmodFd(folder.fd, (mode & PERMISSIONS) | WORKABLE)
}

function putFile(
  place: Place,
  { path, mode, mtimeNs }: Extract<Put, { is: 'file' }>,
  bytes: Uint8Array,
): void {
  const hidden = { folder: place.folder, name: hiddenName() }
  using file = new Descriptor(must(openAt(hidden.folder, hidden.name, NEW_FILE, PENDING_MODE), path))
  replaceWith(hidden, place, path, () => {
    writeAll(file.fd, bytes, path)
    must(chmodFd(file.fd, mode & PERMISSIONS), path)
    must(setTimeFd(file.fd, BigInt(mtimeNs)), path)
  })
}

function writeAll(fd: number, bytes: Uint8Array, path: string): void {
  for (let rest = bytes; rest.length > 0;) {
    const written = must(writeFd(fd, rest), path)
    // Nothing written and nothing said: only a disk without room does that.
    if (written === 0) throw fileError('write', path, -ENOSPC)
    rest = rest.subarray(written)
  }
}

/** Prepares what has a hidden name and moves it into its place; it is gone when that fails. */
function replaceWith(hidden: Place, place: Place, path: string, prepare: () => void): void {
  try {
    prepare()
    must(renameAt(hidden, place, 'over'), path)
  } catch (error) {
    unlinkAt(hidden.folder, hidden.name, 0)
    throw error
  }
}

function putWritten(place: Place, { file, path, mode, mtimeNs }: Extract<Put, { is: 'written' }>): void {
  replaceWith({ folder: place.folder, name: hiddenOf(file) }, place, path, () => {
    must(chmodFd(file.fd, mode & PERMISSIONS), path)
    must(setTimeFd(file.fd, BigInt(mtimeNs)), path)
  })
}

function putLink(place: Place, { path, target, mtimeNs }: Extract<Put, { is: 'link' }>): void {
  const hidden = { folder: place.folder, name: hiddenName() }
  must(symlinkAt(cString(pathToBytes(target) ?? NOTHING), hidden.folder, hidden.name), path)
  replaceWith(hidden, place, path, () => {
    // Some file systems keep no time of links.
    setTimeAt(hidden.folder, hidden.name, BigInt(mtimeNs), AT_SYMLINK_NOFOLLOW)
  })
}

function putHardLink(trail: Trail, { path, target }: Extract<Put, { is: 'hard-link' }>): void {
  const source = placeOf(trail, target, false)
  using file = new Descriptor(must(openAt(source.folder, source.name, O_PATH | O_NOFOLLOW), target))
  if (statOpen(file.fd, target).kind !== 'file')
    throw new SandwireError('special_file', 'what it is another name of is no file')
  const place = placeOf(trail, path)
  const hidden = { folder: place.folder, name: hiddenName() }
  const from = { folder: AT_FDCWD, name: cString(Buffer.from(`/proc/self/fd/${file.fd}`)) }
  must(linkAt(from, hidden, AT_SYMLINK_FOLLOW), path)
  replaceWith(hidden, place, path, () => undefined)
  // Of two names of one file none takes the place of the other, and the hidden one is left.
  unlinkAt(hidden.folder, hidden.name, 0)
}

function settle(place: Place, { path, mode, mtimeNs }: Extract<Put, { is: 'settled' }>): void {
  const fd = openAt(place.folder, place.name, FOLDER_FLAGS)
  if (fd === -ENOENT || fd === -ENOTDIR) return
  using folder = new Descriptor(must(fd, path))
  must(setTimeFd(folder.fd, BigInt(mtimeNs)), path)
  must(chmodFd(folder.fd, mode & PERMISSIONS), path)
}
