import { close, fstat, read } from 'node:fs'
import { promisify } from 'node:util'
import { pathToBytes, SandwireError } from '@sandwire/protocol'
import { comparePaths, MAX_DEPTH, TarBuffer } from '@sandwire/tar'
import type { Files, FileStat, Found } from '../files.ts'
import { systemError } from '../beneath/file-error.ts'
import { type Read, type TransferFiles, UPLOAD_PREFIX } from './transfer-files.ts'

/** Limits of one archive; a client continues after the last entry. */
const LIMITS = { maxNodes: 5_000_000, maxDepth: MAX_DEPTH, timeMs: 24 * 60 * 60 * 1000 } as const
/** Longest path in a request. */
const MAX_PATH_BYTES = 4095
/** Bytes read at a time, of one file or of several. */
const READ_BYTES = 1024 * 1024

const readAt = promisify(read)
const statFd = promisify(fstat)
const closeFd = promisify(close)

interface PackOptions {
  readonly files: Pick<Files, 'walk'>
  readonly transfer: Pick<TransferFiles, 'readMany'>
  /** Entries up to this one are skipped. */
  readonly after?: string | undefined
  readonly signal?: AbortSignal
}

function isUnfinished({ name }: Found): boolean {
  return name.startsWith(UPLOAD_PREFIX)
}

/** True for entries of a folder whose path is too long, which is reported once. */
function isBeyond(path: string): boolean {
  const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')))
  return folder.length * 3 > MAX_PATH_BYTES && (pathToBytes(folder)?.length ?? 0) > MAX_PATH_BYTES
}

function isDeepest(path: string): boolean {
  return path.split('/').length >= LIMITS.maxDepth
}

function writeHead(archive: TarBuffer, path: string, stat: FileStat, target?: string): void {
  const { sizeBytes, mode, mtimeNs, kind } = stat
  if (kind === 'special') throw new SandwireError('internal', 'Cannot pack the folder')
  archive.entry({ path, kind, sizeBytes, mode, mtimeNs, ...(target === undefined ? {} : { target }) })
}

/**
 * Packs everything below a folder as tar, sorted by the bytes of each path component. Entries that are skipped (special files,
 * unreadable or too deep) are replaced by a note. A file that shrinks while it is read aborts the archive, because its size was
 * already written.
 */
export async function* packFolder(
  folder: string,
  { files, transfer, after, signal }: PackOptions,
): AsyncGenerator<Uint8Array, void, void> {
  const isWanted = (found: Found): boolean =>
    !isUnfinished(found) &&
    !isBeyond(found.path) &&
    (after === undefined || comparePaths(found.path, after) > 0)
  let limit: string | undefined
  const reached = (which: string): void => {
    // Depth is reported at the entry itself.
    if (which !== 'depth') limit = which
  }
  const limits = { ...LIMITS, reached }
  for await (const part of files.walk(folder, limits, signal))
    yield* packPart(folder, part.filter(isWanted), transfer)
  // Aborts instead of ending the archive as if it were complete.
  if (limit !== undefined) throw new SandwireError('timed_out', `Cannot pack the folder: too many ${limit}`)
  const end = new TarBuffer()
  end.end()
  yield end.take()
}

async function* packPart(
  folder: string,
  part: readonly Found[],
  transfer: Pick<TransferFiles, 'readMany'>,
): AsyncGenerator<Uint8Array, void, void> {
  let paths = part.map(({ path }) => path)
  const archive = new TarBuffer()
  while (paths.length > 0) {
    const { reads, bytes } = await transfer.readMany(folder, paths, READ_BYTES)
    for (const [at, done] of reads.entries()) {
      const path = paths[at] ?? ''
      if (done.kind === 'open') yield* packOpen(archive, path, done)
      else packRead(archive, path, { done, bytes })
    }
    if (archive.length > 0) yield archive.take()
    paths = paths.slice(reads.length)
  }
}

function packRead(
  archive: TarBuffer,
  path: string,
  { done, bytes }: { readonly done: Exclude<Read, { kind: 'open' }>; readonly bytes: Uint8Array },
): void {
  switch (done.kind) {
    case 'file':
      writeHead(archive, path, done.stat)
      archive.content(bytes.subarray(done.from, done.to))
      if (done.isChanged) archive.note({ code: 'file_changed', path })
      return
    case 'folder':
      writeHead(archive, path, done.stat)
      if (done.refusal !== undefined) archive.note({ code: done.refusal.code, path })
      else if (isDeepest(path)) archive.note({ code: 'path_refused', path })
      return
    case 'link':
      return writeHead(archive, path, done.stat, done.target)
    case 'refused':
      return archive.note({ code: done.refusal.code, path })
  }
}

async function* packOpen(
  archive: TarBuffer,
  path: string,
  { fd, stat }: Extract<Read, { kind: 'open' }>,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    writeHead(archive, path, stat)
    yield archive.take()
    for (let at = 0; at < stat.sizeBytes;) {
      const wanted = Math.min(READ_BYTES, stat.sizeBytes - at)
      const { bytesRead, buffer } = await readAt(fd, new Uint8Array(wanted), 0, wanted, at)
      if (bytesRead === 0)
        throw new SandwireError(
          'file_changed',
          'Cannot pack the folder: a file was truncated while it was read',
        )
      yield buffer.subarray(0, bytesRead)
      at += bytesRead
    }
    archive.padding(stat.sizeBytes)
    const { mtimeNs, size } = await statFd(fd, { bigint: true })
    if (String(mtimeNs) !== stat.mtimeNs || Number(size) !== stat.sizeBytes)
      archive.note({ code: 'file_changed', path })
  } catch (error) {
    throw systemError(error, 'Cannot pack the folder')
  } finally {
    await closeFd(fd)
  }
}
