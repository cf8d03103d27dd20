import { SandwireError } from '@sandwire/protocol'
import {
  chmodFd,
  cString,
  Descriptor,
  openAt,
  renameAt,
  setTimeFd,
  statAt,
  unlinkAt,
} from '../beneath/system-calls.ts'
import {
  AT_SYMLINK_NOFOLLOW,
  ENOENT,
  O_CREAT,
  O_DIRECTORY,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
  O_RDWR,
} from '../beneath/constants.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import { type Slot, statSlot } from '../beneath/root.ts'
import { readStat, STATX_BYTES } from '../beneath/statx.ts'
import type { FileStat } from '../files.ts'
import { type FinishedUpload, type OpenUpload, UPLOAD_PREFIX } from '../transfer/transfer-files.ts'
import { checkCondition, cName, eachName, type FileContext, isHiddenName, type Job } from './context.ts'
import { statOpen } from './listing.ts'
import { removeTree } from './remove.ts'

const UPLOAD_FLAGS = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
/** Mode of new files, less the umask. */
const FILE_MODE = 0o666
/** No other user reads a file before it is complete. */
const PENDING_MODE = 0o600
/** Names of a folder that are searched for abandoned files. */
const MAX_SWEPT = 20_000

function hiddenOf(id: string): Uint8Array {
  return cString(Buffer.from(`${UPLOAD_PREFIX}${id}`))
}

/** Opens the partial upload; refuses anything but a regular file with one link. */
function openHidden(slot: Slot, id: string, flags: number): Descriptor | undefined {
  const fd = openAt(slot.folder, hiddenOf(id), UPLOAD_FLAGS | flags, PENDING_MODE)
  if (fd === -ENOENT) return undefined
  if (fd < 0) throw fileError('write', slot.path, fd)
  const file = new Descriptor(fd)
  if (statOpen(fd, slot.path).kind === 'file') return file
  file[Symbol.dispose]()
  throw refusal('special_file', 'write', slot.path, 'the partial file was replaced')
}

export interface UploadRequest {
  readonly path: string
  readonly id: string
}

/** Opens an upload to continue it, or starts one; then removes abandoned uploads and other temporary files from the folder. */
export function* openUpload(
  { root }: FileContext,
  { path, id }: UploadRequest,
  { makes, staleBeforeNs }: { readonly makes: boolean; readonly staleBeforeNs: string },
): Job<OpenUpload | undefined> {
  using slot = root.openSlot(path, 'write')
  const found = openHidden(slot, id, 0)
  if (found === undefined && makes) yield* sweep(slot, BigInt(staleBeforeNs))
  using file = found ?? (makes ? openHidden(slot, id, O_CREAT) : undefined)
  if (file === undefined) return undefined
  const { sizeBytes } = statOpen(file.fd, path)
  return { fd: file.release(), sizeBytes }
}

function* sweep(slot: Slot, staleBeforeNs: bigint): Job<void> {
  const fd = openAt(slot.folder, cName('.'), O_RDONLY | O_DIRECTORY | O_NONBLOCK)
  // A user who may write but not list the folder leaves abandoned files there.
  if (fd < 0) return
  using folder = new Descriptor(fd)
  const abandoned: string[] = []
  let seen = 0
  const visit = (name: string): boolean => {
    if (name.startsWith(UPLOAD_PREFIX) || isHiddenName(name)) abandoned.push(name)
    seen += 1
    return seen < MAX_SWEPT
  }
  yield* eachName(folder.fd, visit, { action: 'list', path: slot.path })
  const stat = new Uint8Array(STATX_BYTES)
  for (const name of abandoned) {
    if (statAt(folder.fd, cName(name), AT_SYMLINK_NOFOLLOW, stat) < 0) continue
    const { kind, mtimeNs } = readStat(stat)
    if (BigInt(mtimeNs) >= staleBeforeNs) continue
    const entry = { folder: folder.fd, name: cName(name), path: slot.path }
    if (kind === 'file' || kind === 'link') unlinkAt(entry.folder, entry.name, 0)
    // A copy of a folder that was not completed.
    if (kind === 'folder' && isHiddenName(name)) yield* removeTree(entry, 0)
  }
}

/** Moves an upload into place if its size is correct. */
export function finishUpload(
  { root, umask }: FileContext,
  { path, id }: UploadRequest,
  finished: FinishedUpload,
): FileStat {
  using slot = root.openSlot(path, 'write')
  using file = openHidden(slot, id, 0)
  if (file === undefined) throw refusal('file_not_found', 'write', path, 'there is no such upload')
  const { sizeBytes } = statOpen(file.fd, path)
  if (sizeBytes !== finished.sizeBytes)
    throw new SandwireError('conflict', `Cannot finish the upload: ${sizeBytes} bytes have been received`)
  const replaced = statSlot(slot, 'write')
  checkCondition(finished, replaced, { action: 'write', path })
  const old = replaced === undefined ? undefined : readStat(replaced)
  if (old?.kind === 'folder') throw refusal('is_a_folder', 'write', path, 'it is a folder')
  const mode = finished.mode ?? (old?.kind === 'file' ? old.mode : FILE_MODE & ~umask)
  must(chmodFd(file.fd, mode & 0o777), path)
  if (finished.mtimeNs !== undefined) must(setTimeFd(file.fd, BigInt(finished.mtimeNs)), path)
  must(renameAt({ folder: slot.folder, name: hiddenOf(id) }, slot, 'over'), path)
  return statOpen(file.fd, path)
}

/** Removes a partial upload; returns whether there was one. */
export function dropUpload({ root }: FileContext, { path, id }: UploadRequest): boolean {
  using slot = root.openSlot(path, 'write')
  const result = unlinkAt(slot.folder, hiddenOf(id), 0)
  if (result < 0 && result !== -ENOENT) throw fileError('remove', path, result)
  return result >= 0
}

function must(result: number, path: string): void {
  if (result < 0) throw fileError('write', path, result)
}
