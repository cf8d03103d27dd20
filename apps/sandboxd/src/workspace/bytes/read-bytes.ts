import { close, read } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError } from '@sandwire/protocol'
import { statFd } from '../beneath/calls.ts'
import { linksOf, readStat, STATX_BYTES } from '../beneath/statx.ts'
import type { FileStat, OpenFile } from '../files.ts'
import { systemError } from '../thread/system-error.ts'

/** Large enough that a gigabyte a second is a few thousand steps, small enough that hundreds of readers fit into memory. */
const CHUNK_BYTES = 512 * 1024

const closeFd = promisify(close)

/** A part of a file. */
export interface Span {
  readonly start: number
  /** Behind its last byte. */
  readonly end: number
}

function readAt(fd: number, into: Uint8Array, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, into, 0, into.byteLength, position, (error, count) =>
      error === null ? resolve(count) : reject(systemError(error, 'Cannot read the file')),
    )
  })
}

/**
 * Reads a span of an open file step by step and closes it at the end. A file that is not the same any more when its last bytes
 * are read is an error instead of them: nobody gets a mixture of two contents as one file.
 */
export async function* readBytes(
  { fd, stat }: OpenFile,
  { start, end }: Span,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  try {
    let at = start
    while (at < end) {
      const buffer = new Uint8Array(Math.min(CHUNK_BYTES, end - at))
      const count = await readAt(fd, buffer, at)
      if (count === 0) throw changed()
      at += count
      if (at === end && !isStill(fd, stat)) throw changed()
      yield buffer.subarray(0, count)
    }
  } finally {
    await closeFd(fd)
  }
}

function changed(): SandwireError {
  return new SandwireError('file_changed', 'Cannot read the file: it was changed meanwhile')
}

/** Whether a file has the bytes that it had. One that another took the place of has: it lost its name, and nothing else. */
function isStill(fd: number, before: FileStat): boolean {
  const bytes = new Uint8Array(STATX_BYTES)
  if (statFd(fd, bytes) < 0) return false
  const now = readStat(bytes)
  const isNameless =
    linksOf(bytes) === 0 && now.sizeBytes === before.sizeBytes && now.mtimeNs === before.mtimeNs
  return now.etag === before.etag || isNameless
}

/** The same as a stream that reads only as fast as it is taken. */
export function streamBytes(file: OpenFile, span: Span): ReadableStream<Uint8Array> {
  const chunks = readBytes(file, span)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await chunks.return()
      },
    },
    { highWaterMark: 0 },
  )
}
