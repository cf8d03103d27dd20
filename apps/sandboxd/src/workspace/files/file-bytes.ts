import { close, read, writev } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError } from '@sandwire/protocol'
import { systemError } from '../beneath/file-error.ts'
import { linksOf, readStat, STATX_BYTES } from '../beneath/statx.ts'
import { statFd } from '../beneath/system-calls.ts'
import type { FileStat, OpenFile } from '../files.ts'

/** Large enough for a gigabyte per second in a few thousand steps, small enough for hundreds of readers. */
const CHUNK_BYTES = 512 * 1024

const closeFd = promisify(close)

/** A part of a file. */
export interface Span {
  readonly start: number
  /** Exclusive. */
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
 * Reads a span of an open file and closes it at the end. Throws if the file has changed when its last bytes are read, so that no
 * reader gets a mixture of two contents.
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
  return new SandwireError('file_changed', 'Cannot read the file: it has changed')
}

/** True when the content has not changed. A file that was replaced only lost its name. */
function isStill(fd: number, before: FileStat): boolean {
  const bytes = new Uint8Array(STATX_BYTES)
  if (statFd(fd, bytes) < 0) return false
  const now = readStat(bytes)
  const isNameless =
    linksOf(bytes) === 0 && now.sizeBytes === before.sizeBytes && now.mtimeNs === before.mtimeNs
  return now.etag === before.etag || isNameless
}

/** Like `readBytes`, as a stream with backpressure. */
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

/** Bytes collected before a write: small writes cost as much as large ones. */
const BATCH_BYTES = 1024 * 1024
/** Buffers that one `writev` call accepts. */
const MAX_PIECES = 512

function writeSome(fd: number, pieces: readonly Uint8Array[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    writev(fd, pieces, position, (error, count) =>
      error === null ? resolve(count) : reject(systemError(error, 'Cannot write the file')),
    )
  })
}

/** The buffers without their first bytes. */
function after(pieces: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let skip = bytes
  const left: Uint8Array[] = []
  for (const piece of pieces) {
    if (skip < piece.byteLength) left.push(skip === 0 ? piece : piece.subarray(skip))
    skip = Math.max(0, skip - piece.byteLength)
  }
  return left
}

async function writeAll(fd: number, pieces: readonly Uint8Array[], position: number): Promise<void> {
  let left = [...pieces]
  let at = position
  while (left.length > 0) {
    const count = await writeSome(fd, left, at)
    at += count
    left = after(left, count)
  }
}

/**
 * Writes a source to an open file from a position on, with backpressure: one batch is written while the next is collected.
 * Returns the number of bytes. When it ends, also by an error, no write is pending.
 */
export async function writeBytes(
  fd: number,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  position = 0,
): Promise<number> {
  let pieces: Uint8Array[] = []
  let held = 0
  let at = position
  let writing = Promise.resolve()
  const flush = async (): Promise<void> => {
    await writing
    writing = writeAll(fd, pieces, at)
    // Awaited with the next batch; the handler prevents an unhandled rejection until then.
    writing.catch(() => undefined)
    at += held
    pieces = []
    held = 0
  }
  try {
    for await (const piece of source) {
      if (piece.byteLength === 0) continue
      pieces.push(piece)
      held += piece.byteLength
      if (held >= BATCH_BYTES || pieces.length >= MAX_PIECES) await flush()
    }
    await flush()
  } finally {
    await writing
  }
  return at - position
}
