import {
  AT_SYMLINK_NOFOLLOW,
  EEXIST,
  EINVAL,
  EISDIR,
  ENOENT,
  ENOSYS,
  ENOTDIR,
  ENOTEMPTY,
  ENXIO,
  EOPNOTSUPP,
  EPERM,
  EXDEV,
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_PATH,
  O_RDONLY,
  O_WRONLY,
} from '../beneath/constants.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import { type Slot, statSlot } from '../beneath/root.ts'
import { identityOf, readStat, STATX_BYTES } from '../beneath/statx.ts'
import {
  chmodFd,
  copyRange,
  Descriptor,
  makeFolderAt,
  openAt,
  type EntryRef,
  readFd,
  readLinkAt,
  renameAt,
  seekFd,
  statAt,
  symlinkAt,
  truncateFd,
  unlinkAt,
  writeFd,
} from '../beneath/system-calls.ts'
import { cName, eachName, type FileContext, hiddenName, type Job } from './context.ts'
import { statOpen } from './listing.ts'
import { removeTree } from './remove.ts'
import { MAX_DEPTH } from './walk.ts'

const MAX_TARGET_BYTES = 4096
const FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK
const FILE_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

export interface Copied {
  /** Number of special files that were skipped. */
  readonly left: number
}

/**
 * Copies a file, a link or a folder with its contents. The copy is made under a temporary name and moved into place when it is
 * complete; on failure nothing remains.
 */
export function* copy(
  { root }: FileContext,
  from: string,
  to: string,
  options: { readonly replaces: boolean },
): Job<Copied> {
  using source = root.openSlot(from, 'copy')
  using target = root.openSlot(to, 'copy')
  const found = statSlot(source, 'copy')
  if (found === undefined) throw fileError('copy', from, -ENOENT)
  if (!options.replaces && statSlot(target, 'copy') !== undefined) throw fileError('copy', to, -EEXIST)
  if (readStat(found).kind === 'folder' && isWithin(root.fd, target.folder, identityOf(found)))
    throw refusal('path_refused', 'copy', from, 'a folder cannot be copied into itself')
  if (readStat(found).kind === 'special')
    throw refusal('special_file', 'copy', from, 'neither a file nor a folder')
  const hidden: EntryRef = { folder: target.folder, name: hiddenName() }
  const counted = { left: 0 }
  let isPlaced = false
  try {
    yield* copyAny({ from: source, to: hidden, path: from, depth: 0 }, counted)
    yield* moveIntoPlace(hidden, target, options.replaces)
    isPlaced = true
  } finally {
    // Without pauses, also when the request was canceled.
    if (!isPlaced) for (const _ of dropHidden(hidden, to));
  }
  return counted
}

function* dropHidden(hidden: EntryRef, path: string): Job<void> {
  const result = unlinkAt(hidden.folder, hidden.name, 0)
  if (result === -EISDIR) yield* removeTree({ ...hidden, path }, 0)
}

/** Moves the copy into place. An existing folder is exchanged with it and then removed. */
function* moveIntoPlace(hidden: EntryRef, target: Slot, replaces: boolean): Job<void> {
  const moved = renameAt(hidden, target, replaces ? 'over' : 'beside')
  if (moved >= 0) return
  const isOccupied = replaces && [-EISDIR, -ENOTDIR, -EEXIST, -ENOTEMPTY].includes(moved)
  if (!isOccupied) throw fileError('copy', target.path, moved)
  const exchanged = renameAt(hidden, target, 'exchange')
  if (exchanged < 0) throw fileError('copy', target.path, exchanged)
  yield* dropHidden(hidden, target.path)
}

interface Step {
  readonly from: EntryRef
  readonly to: EntryRef
  readonly path: string
  readonly depth: number
}

function* copyAny(step: Step, counted: { left: number }): Job<void> {
  const stat = new Uint8Array(STATX_BYTES)
  const result = statAt(step.from.folder, step.from.name, AT_SYMLINK_NOFOLLOW, stat)
  if (result < 0) throw fileError('copy', step.path, result)
  switch (readStat(stat).kind) {
    case 'file':
      return yield* copyFile(step, counted)
    case 'folder':
      return yield* copyFolder(step, counted)
    case 'link':
      return copyLink(step)
    case 'special':
      counted.left += 1
  }
}

function openFrom({ from, path }: Step, flags: number): Descriptor {
  const fd = openAt(from.folder, from.name, flags)
  if (fd < 0) throw fileError('copy', path, fd)
  return new Descriptor(fd)
}

function* copyFile(step: Step, counted: { left: number }): Job<void> {
  const { to, path } = step
  using from = openFrom(step, FILE_FLAGS)
  const { kind, sizeBytes, mode } = statOpen(from.fd, path)
  if (kind !== 'file') {
    counted.left += 1
    return
  }
  const fd = openAt(to.folder, to.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  if (fd < 0) throw fileError('copy', path, fd)
  using file = new Descriptor(fd)
  yield* copyBytes({ from: from.fd, to: file.fd, sizeBytes, path })
  chmodFd(file.fd, mode & 0o777)
}

function copyLink({ from, to, path }: Step): void {
  const target = new Uint8Array(MAX_TARGET_BYTES)
  const size = readLinkAt(from.folder, from.name, target)
  const result =
    size < 0 ? size : symlinkAt(new Uint8Array([...target.subarray(0, size), 0]), to.folder, to.name)
  if (result < 0) throw fileError('copy', path, result)
}

function* copyFolder(step: Step, counted: { left: number }): Job<void> {
  const { to, path, depth } = step
  if (depth > MAX_DEPTH)
    throw refusal('path_refused', 'copy', path, `folders are nested more than ${MAX_DEPTH} deep`)
  using from = openFrom(step, FOLDER_FLAGS)
  const made = makeFolderAt(to.folder, to.name, 0o700)
  const fd = made < 0 ? made : openAt(to.folder, to.name, FOLDER_FLAGS)
  if (fd < 0) throw fileError('copy', path, fd)
  using folder = new Descriptor(fd)
  const names: string[] = []
  yield* eachName(from.fd, (name) => names.push(name) > 0, { action: 'copy', path })
  for (const name of names) {
    yield undefined
    const entryIn = (within: number): EntryRef => ({ folder: within, name: cName(name) })
    yield* copyAny({ from: entryIn(from.fd), to: entryIn(folder.fd), path, depth: depth + 1 }, counted)
  }
  chmodFd(folder.fd, statOpen(from.fd, path).mode & 0o777)
}

/** True when a folder is the one with this identity or below it. Walks up to the root. */
function isWithin(root: number, folder: number, identity: string): boolean {
  const dot = cName('.')
  const end = identityAt(root, dot)
  let at = new Descriptor(openAt(folder, dot, O_PATH | O_DIRECTORY))
  for (let depth = 0; depth < 4096 && at.fd >= 0; depth += 1) {
    using here = at
    const found = identityAt(here.fd, dot)
    if (found === identity) return true
    if (found === end || found === undefined) return false
    at = new Descriptor(openAt(here.fd, cName('..'), O_PATH | O_DIRECTORY))
  }
  return false
}

function identityAt(folder: number, name: Uint8Array): string | undefined {
  const stat = new Uint8Array(STATX_BYTES)
  return statAt(folder, name, 0, stat) < 0 ? undefined : identityOf(stat)
}

/** Bytes copied between two pauses. */
const STEP_BYTES = 8 * 1024 * 1024
const BUFFER_BYTES = 1024 * 1024
/** Errors of `copy_file_range` for files that the kernel cannot copy itself. */
const NO_COPY_RANGE: readonly number[] = [-EXDEV, -EINVAL, -EOPNOTSUPP, -ENOSYS, -EPERM]
const SEEK_SET = 0
const SEEK_DATA = 3
const SEEK_HOLE = 4

interface CopyPlan {
  readonly from: number
  /** Empty, open for writing. */
  readonly to: number
  readonly sizeBytes: number
  readonly path: string
}

/** Copies the bytes of a file but not its holes, so that a sparse file stays sparse. */
function* copyBytes({ from, to, sizeBytes, path }: CopyPlan): Job<void> {
  let at = 0
  while (at < sizeBytes) {
    const data = seekFd(from, at, SEEK_DATA)
    if (data === -ENXIO) break
    const start = data < 0 ? at : data
    const hole = data < 0 ? sizeBytes : seekFd(from, start, SEEK_HOLE)
    const end = Math.min(hole < 0 ? sizeBytes : hole, sizeBytes)
    seekFd(from, start, SEEK_SET)
    seekFd(to, start, SEEK_SET)
    yield* copyPart({ from, to, path, sizeBytes: end - start })
    at = Math.max(end, at + 1)
  }
  const result = truncateFd(to, sizeBytes)
  if (result < 0) throw fileError('copy', path, result)
}

function* copyPart({ from, to, sizeBytes, path }: CopyPlan): Job<void> {
  let left = sizeBytes
  while (left > 0) {
    const count = copyRange(from, to, Math.min(left, STEP_BYTES))
    if (NO_COPY_RANGE.includes(count)) return yield* copyThroughBuffer({ from, to, path, sizeBytes: left })
    if (count < 0) throw fileError('copy', path, count)
    if (count === 0) return
    left -= count
    yield undefined
  }
}

function* copyThroughBuffer({ from, to, sizeBytes, path }: CopyPlan): Job<void> {
  const buffer = new Uint8Array(BUFFER_BYTES)
  let left = sizeBytes
  while (left > 0) {
    const count = readFd(from, buffer.subarray(0, Math.min(left, BUFFER_BYTES)))
    if (count < 0) throw fileError('copy', path, count)
    if (count === 0) return
    for (let at = 0; at < count;) {
      const written = writeFd(to, buffer.subarray(at, count))
      if (written < 0) throw fileError('copy', path, written)
      at += written
    }
    left -= count
    yield undefined
  }
}
