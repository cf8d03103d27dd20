import { close, fstat, read } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError, tar } from '@sandwire/protocol'
import type { Files, FileStat, Found } from '../files.ts'
import { systemError } from '../thread/system-error.ts'
import { type Read, type TransferFiles, UPLOAD_PREFIX } from './transfer-files.ts'

/** More are not packed: whoever has more asks again behind the last one. */
const LIMITS = { maxNodes: 5_000_000, maxDepth: tar.MAX_DEPTH, timeMs: 24 * 60 * 60 * 1000 } as const
/** Files up to this size are read many at a time. */
const SMALL_BYTES = 256 * 1024
/** Bytes that are read at a time, however many files they are of. */
const READ_BYTES = 1024 * 1024

const readAt = promisify(read)
const statFd = promisify(fstat)
const closeFd = promisify(close)

export interface PackOptions {
  readonly files: Pick<Files, 'walk'>
  readonly transfer: Pick<TransferFiles, 'readMany'>
  /** What is up to here, in the order of packing, is left out. */
  readonly after?: string | undefined
  readonly signal?: AbortSignal
}

function isUnfinished({ name }: Found): boolean {
  return name.startsWith(UPLOAD_PREFIX)
}

/** Files that fit into one reading, in order. */
function* inReadings(found: readonly Found[]): Generator<readonly Found[]> {
  let reading: Found[] = []
  let bytes = 0
  for (const each of found) {
    const size = each.kind === 'file' ? Math.min(each.sizeBytes, SMALL_BYTES) : 0
    if (bytes + size > READ_BYTES && reading.length > 0) {
      yield reading
      reading = []
      bytes = 0
    }
    reading.push(each)
    bytes += size
  }
  if (reading.length > 0) yield reading
}

function headOf(path: string, stat: FileStat, target?: string): Uint8Array {
  const { sizeBytes, mode, mtimeNs, kind } = stat
  if (kind === 'special') throw new SandwireError('internal', 'Cannot pack the folder')
  return tar.writeEntry({ path, kind, sizeBytes, mode, mtimeNs, ...(target === undefined ? {} : { target }) })
}

/**
 * Everything below a folder as an archive, in the order of the bytes of each path's components. What is left out, because it is
 * neither a file nor a folder or may not be read, is told in a note in its place. A file that becomes shorter while it is read
 * breaks the archive off: its length was told already.
 */
export async function* packFolder(
  folder: string,
  { files, transfer, after, signal }: PackOptions,
): AsyncGenerator<Uint8Array, void, void> {
  const isWanted = (found: Found): boolean =>
    !isUnfinished(found) && (after === undefined || tar.comparePaths(found.path, after) > 0)
  let limit: string | undefined
  const limits = { ...LIMITS, reached: (which: string) => (limit = which) }
  for await (const part of files.walk(folder, limits, signal))
    for (const reading of inReadings(part.filter(isWanted))) yield* packReading(folder, reading, transfer)
  // Not an end that could be taken for one.
  if (limit !== undefined) throw new SandwireError('timed_out', `Cannot pack the folder: too many ${limit}`)
  yield tar.TAR_END
}

async function* packReading(
  folder: string,
  reading: readonly Found[],
  transfer: Pick<TransferFiles, 'readMany'>,
): AsyncGenerator<Uint8Array, void, void> {
  let rest = reading
  while (rest.length > 0) {
    const paths = rest.map(({ path }) => path)
    const reads = await transfer.readMany(folder, paths, SMALL_BYTES)
    const parts: Uint8Array[] = []
    for (const [at, done] of reads.entries()) {
      const path = paths[at] ?? ''
      if (done.is !== 'open') parts.push(...packRead(path, done))
      else {
        yield Buffer.concat(parts.splice(0))
        yield* packOpen(path, done)
      }
    }
    if (parts.length > 0) yield Buffer.concat(parts)
    rest = rest.slice(Math.max(1, reads.length))
  }
}

function packRead(path: string, done: Exclude<Read, { is: 'open' }>): readonly Uint8Array[] {
  switch (done.is) {
    case 'file':
      return [headOf(path, done.stat), done.bytes, new Uint8Array(tar.paddingOf(done.bytes.length))]
    case 'folder':
      return [headOf(path, done.stat)]
    case 'link':
      return [headOf(path, done.stat, done.target)]
    case 'refused':
      return [tar.writeNote({ code: done.refusal.code, path })]
  }
}

async function* packOpen(
  path: string,
  { fd, stat }: Extract<Read, { is: 'open' }>,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield headOf(path, stat)
    for (let at = 0; at < stat.sizeBytes;) {
      const wanted = Math.min(READ_BYTES, stat.sizeBytes - at)
      const { bytesRead, buffer } = await readAt(fd, new Uint8Array(wanted), 0, wanted, at)
      if (bytesRead === 0)
        throw new SandwireError(
          'file_changed',
          'Cannot pack the folder: a file became shorter while it was read',
        )
      yield buffer.subarray(0, bytesRead)
      at += bytesRead
    }
    yield new Uint8Array(tar.paddingOf(stat.sizeBytes))
    const { mtimeNs, size } = await statFd(fd, { bigint: true })
    if (String(mtimeNs) !== stat.mtimeNs || Number(size) !== stat.sizeBytes)
      yield tar.writeNote({ code: 'file_changed', path })
  } catch (error) {
    throw systemError(error, 'Cannot pack the folder')
  } finally {
    await closeFd(fd)
  }
}
