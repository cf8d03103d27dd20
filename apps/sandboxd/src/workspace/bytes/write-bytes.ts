import { writev } from 'node:fs'
import { systemError } from '../thread/system-error.ts'

/** Bytes that are collected before they are written: small writes cost as much as large ones. */
const BATCH_BYTES = 1024 * 1024
/** Pieces that one call takes. */
const MAX_PIECES = 512

function writeSome(fd: number, pieces: readonly Uint8Array[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    writev(fd, pieces, position, (error, count) =>
      error === null ? resolve(count) : reject(systemError(error, 'Cannot write the file')),
    )
  })
}

/** What is left of pieces behind some bytes. */
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
 * Writes everything that comes to an open file, from a position on, and takes only as much as the disk does: one batch is
 * written while the next is collected. Returns how much. When it ends, also by an error, nothing is being written any more.
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
    // Looked at when the next batch is there; until then nobody else waits for it.
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
