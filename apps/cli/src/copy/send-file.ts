import { createHash } from 'node:crypto'
import { fstatSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError } from '@sandwire/protocol'
import { BATCH_BYTES } from './upload.ts'
import { retryTransfer, type Transfer } from './transfer.ts'
import type { FinishUpload } from './remote-workspace.ts'
import { Interrupted } from '../errors/errors.ts'

/** Where the bytes of an upload come from. */
export interface PieceSource {
  /** Up to so many bytes at an offset; none at the end. */
  readonly read: (offset: number, bytes: number) => Promise<Uint8Array<ArrayBuffer>>
}

const readAt = promisify(read)

/** The same for the same file and place, so that a copy that was given up goes on where it was. */
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

/** Sends an open file in pieces. Throws `file_changed` when it is another one at the end than at the beginning. */
export async function sendOpenFile(
  transfer: Transfer,
  fd: number,
  { id, path }: { readonly id: string; readonly path: string },
): Promise<void> {
  const before = fstatSync(fd, { bigint: true })
  const size = Number(before.size)
  await orDrop(transfer, { id, path }, async () => {
    const end = await sendPieces(transfer, fileSource(fd), { id, path, sizeBytes: size })
    const after = fstatSync(fd, { bigint: true })
    if (end !== size || after.mtimeNs !== before.mtimeNs || after.size !== before.size)
      throw new SandwireError('file_changed', 'it changed while it was read')
    const mode = Number(before.mode) & 0o777
    await finishUpload(transfer, id, { path, size, mode, mtimeMs: Number(before.mtimeNs) / 1e6 })
  })
}

/** Does not leave there what nobody will go on with: it takes room. What was only cut goes on when it is copied again. */
async function orDrop(
  { remote, report }: Transfer,
  { id, path }: { readonly id: string; readonly path: string },
  action: () => Promise<void>,
): Promise<void> {
  try {
    await action()
  } catch (error) {
    const isCut = error instanceof Interrupted || SandwireError.from(error).row.retryable
    // What cannot be removed now, the sandbox forgets after a day.
    if (!isCut) await remote.drop(id, path).catch(() => undefined)
    else report.keep(path)
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

/** Sends pieces until the source or the size ends; returns how many bytes there were. */
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
  report.moved(offset)
  const arrived = (received: number): void => {
    report.moved(received - offset)
    offset = received
  }
  while (offset < sizeBytes) {
    const piece = await source.read(offset, Math.min(BATCH_BYTES, sizeBytes - offset))
    if (piece.length === 0) break
    let isFirst = true
    const sendOrAsk = async (): Promise<void> => {
      // What arrived before a cut need not go again.
      const received = isFirst ? offset : await remote.received(id, path)
      isFirst = false
      arrived(received === offset ? await putPiece(transfer, { id, path }, offset, piece) : received)
    }
    await retryTransfer(transfer, sendOrAsk, () => offset)
  }
  return offset
}

/** Sends one piece. Where the other side has other bytes than was thought, because an answer was cut, it says which. */
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

/** Pieces of a stream, of which the last one can be asked for again. */
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
