import { SandwireError, textOfPath } from '@sandwire/protocol'
import { cString, openAt, type Place, readFd, readLinkAt, statAt } from '../beneath/calls.ts'
import { Descriptor } from '../beneath/descriptor.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import { AT_SYMLINK_NOFOLLOW, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } from '../beneath/flags.ts'
import { isParent, parsePath } from '../beneath/path.ts'
import { readStat, STATX_BYTES } from '../beneath/statx.ts'
import { Trail } from '../beneath/trail.ts'
import type { FileStat } from '../files.ts'
import type { Read } from '../transfer/transfer-files.ts'
import type { Ground, Job } from './job.ts'
import { statOpen } from './stat.ts'

const FILE_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
const MAX_TARGET_BYTES = 4096
/** Items read between two pauses. */
const BATCH = 16

/** Reads many files and links of a folder; behind the first long file, which is left open, nothing more. */
export function* readMany(
  { root }: Ground,
  folder: string,
  { paths, maxBytes }: { readonly paths: readonly string[]; readonly maxBytes: number },
): Job<Read[]> {
  using trail = new Trail(root.openFolder(folder, 'read'))
  const reads: Read[] = []
  for (const [index, path] of paths.entries()) {
    if (index % BATCH === BATCH - 1) yield undefined
    const read = attempt(() => readOne(trail, path, maxBytes))
    reads.push(read)
    if (read.is === 'open') break
  }
  return reads
}

function attempt(action: () => Read): Read {
  try {
    return action()
  } catch (caught) {
    const { code, message } = SandwireError.from(caught)
    return { is: 'refused', refusal: { code, why: message } }
  }
}

function readOne(trail: Trail, path: string, maxBytes: number): Read {
  const { names } = parsePath(path)
  const last = names.at(-1)
  if (last === undefined || names.some(isParent))
    throw refusal('path_refused', 'read', path, 'it has no name of its own')
  const folder = trail.enter(names.slice(0, -1), false)
  if (folder < 0) throw fileError('read', path, folder)
  const place = { folder, name: cString(last) }
  const stat = statPlace(place, path)
  switch (stat.kind) {
    case 'file':
      return readFile(place, path, maxBytes)
    case 'folder':
      return { is: 'folder', stat }
    case 'link':
      return { is: 'link', target: readTarget(place, path), stat }
    case 'special':
      throw refusal('special_file', 'read', path, 'neither a file nor a folder')
  }
}

function statPlace({ folder, name }: Place, path: string): FileStat {
  const into = new Uint8Array(STATX_BYTES)
  const result = statAt(folder, name, AT_SYMLINK_NOFOLLOW, into)
  if (result < 0) throw fileError('read', path, result)
  return readStat(into)
}

function readTarget({ folder, name }: Place, path: string): string {
  const into = new Uint8Array(MAX_TARGET_BYTES)
  const size = readLinkAt(folder, name, into)
  if (size < 0) throw fileError('read', path, size)
  return textOfPath(into.subarray(0, size))
}

function readFile({ folder, name }: Place, path: string, maxBytes: number): Read {
  const fd = openAt(folder, name, FILE_FLAGS)
  if (fd < 0) throw fileError('read', path, fd)
  using file = new Descriptor(fd)
  const stat = statOpen(file.fd, path)
  // Something else took its place just now.
  if (stat.kind !== 'file') throw refusal('special_file', 'read', path, 'neither a file nor a folder')
  if (stat.sizeBytes > maxBytes) return { is: 'open', fd: file.release(), stat }
  const bytes = new Uint8Array(stat.sizeBytes)
  let filled = 0
  while (filled < bytes.length) {
    const count = readFd(file.fd, bytes.subarray(filled))
    if (count < 0) throw fileError('read', path, count)
    if (count === 0) break
    filled += count
  }
  if (filled < bytes.length || statOpen(file.fd, path).etag !== stat.etag)
    throw refusal('file_changed', 'read', path, 'it changed while it was read')
  return { is: 'file', bytes, stat }
}
