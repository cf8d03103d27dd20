import { createHash } from 'node:crypto'
import { fstatSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError } from '@sandwire/protocol'
import { MAX_REQUEST_BYTES, retryTransfer, type Transfer } from './transfer.ts'
import type { FinishUpload } from './remote-workspace.ts'
import { Interrupted } from '../errors/errors.ts'

/** Source of the bytes of an upload. */
export interface PieceSource {
  /** Reads up to this many bytes at an offset; none at the end. */
  readonly read: (offset: number, bytes: number) => Promise<Uint8Array<ArrayBuffer>>
}

const readAt = promisify(read)

/** The same id for the same file and target, so that an interrupted upload is resumed. */
export function uploadId(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)
}

function fileSource(fd: number): PieceSource {
  return {
    read: async (offset, bytes) => {
      const piece = new Uint8Array(bytes)
      let filled = 0
      while (filled < bytes) {
        const { bytesRead } = await readAt(fd, piece, filled, bytes - filled, offset + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return piece.subarray(0, filled)
    },
  }
}

/** Uploads an open file in pieces. Throws `file_changed` if it changed meanwhile. */
export async function sendOpenFile(
  transfer: Transfer,
  fd: number,
  { id, path }: { readonly id: string; readonly path: string },
): Promise<void> {
  const before = fstatSync(fd, { bigint: true })
  const size = Number(before.size)
  await dropOnFailure(transfer, { id, path }, async () => {
    const end = await sendPieces(transfer, fileSource(fd), { id, path, sizeBytes: size })
    const after = fstatSync(fd, { bigint: true })
    if (end !== size || after.mtimeNs !== before.mtimeNs || after.size !== before.size)
      throw new SandwireError('file_changed', 'it changed while it was read')
    const mode = Number(before.mode) & 0o777
    await finishUpload(transfer, id, { path, size, mode, mtimeMs: Number(before.mtimeNs) / 1e6 })
  })
}

/** Removes the partial upload after a permanent failure. After an interruption it is kept, to be resumed. */
async function dropOnFailure(
  { remote, report }: Transfer,
  { id, path }: { readonly id: string; readonly path: string },
  action: () => Promise<void>,
): Promise<void> {
  try {
    await action()
  } catch (error) {
    const isResumable = error instanceof Interrupted || SandwireError.from(error).row.retryable
    // If this fails, the sandbox removes it after a day.
    if (!isResumable) await remote.drop(id, path).catch(() => undefined)
    else report.markResumable(path)
    throw error
  }
}

export async function finishUpload(transfer: Transfer, id: string, finish: FinishUpload): Promise<void> {
  await retryTransfer(
    transfer,
    () => transfer.remote.finish(id, finish),
    () => 0,
  )
}

/** Sends pieces up to the size or the end of the source; returns the number of bytes. */
export async function sendPieces(
  transfer: Transfer,
  source: PieceSource,
  { id, path, sizeBytes }: { readonly id: string; readonly path: string; readonly sizeBytes: number },
): Promise<number> {
  const { remote, report } = transfer
  let offset = await retryTransfer(
    transfer,
    () => remote.received(id, path),
    () => 0,
  )
  if (offset > sizeBytes) {
    await remote.drop(id, path)
    offset = 0
  }
  report.addBytes(offset)
  const setReceived = (received: number): void => {
    report.addBytes(received - offset)
    offset = received
  }
  while (offset < sizeBytes) {
    const piece = await source.read(offset, Math.min(MAX_REQUEST_BYTES, sizeBytes - offset))
    if (piece.length === 0) break
    let isFirst = true
    const sendOrResume = async (): Promise<void> => {
      // After a failure, the piece may have arrived.
      const received = isFirst ? offset : await remote.received(id, path)
      isFirst = false
      setReceived(received === offset ? await putPiece(transfer, { id, path }, offset, piece) : received)
    }
    await retryTransfer(transfer, sendOrResume, () => offset)
  }
  return offset
}

/** Sends one piece; returns the bytes received so far. A conflict means that an earlier response was lost. */
async function putPiece(
  { remote }: Transfer,
  { id, path }: { readonly id: string; readonly path: string },
  offset: number,
  piece: Uint8Array<ArrayBuffer>,
): Promise<number> {
  try {
    return await remote.putPiece(id, path, offset, piece)
  } catch (error) {
    if (SandwireError.from(error).code !== 'conflict') throw error
    return await remote.received(id, path)
  }
}

/** Pieces of a stream; only the last piece can be read again. */
export function streamSource(stream: ReadableStream<Uint8Array>): PieceSource {
  const reader = stream.getReader()
  let start = 0
  let held: Uint8Array<ArrayBuffer> = new Uint8Array(0)
  const next = async (maxBytes: number): Promise<Uint8Array<ArrayBuffer>> => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    while (bytes < maxBytes) {
      const { done, value } = await reader.read()
      if (done) break
      chunks.push(value)
      bytes += value.byteLength
    }
    return Uint8Array.from(Buffer.concat(chunks))
  }
  return {
    read: async (offset, maxBytes) => {
      if (offset < start) throw new Error('Cannot read a stream again')
      if (offset < start + held.length) return held.subarray(offset - start)
      start += held.length
      held = await next(maxBytes)
      return held
    },
  }
}
