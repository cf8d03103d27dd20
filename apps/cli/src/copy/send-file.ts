import { createHash } from 'node:crypto'
import { fstatSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError } from '@sandwire/protocol'
import { Interrupted } from '../errors/interrupted.ts'
import { BATCH_BYTES } from './batch.ts'
import { insist, type Journey } from './journey.ts'
import type { Finish } from './remote-workspace.ts'

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
  journey: Journey,
  fd: number,
  { id, path }: { readonly id: string; readonly path: string },
): Promise<void> {
  const before = fstatSync(fd, { bigint: true })
  const size = Number(before.size)
  await orDrop(journey, { id, path }, async () => {
    const end = await sendPieces(journey, fileSource(fd), { id, path, sizeBytes: size })
    const after = fstatSync(fd, { bigint: true })
    if (end !== size || after.mtimeNs !== before.mtimeNs || after.size !== before.size)
      throw new SandwireError('file_changed', 'it changed while it was read')
    const mode = Number(before.mode) & 0o777
    await finishUpload(journey, id, { path, size, mode, mtimeMs: Number(before.mtimeNs) / 1e6 })
  })
}

/** Does not leave there what nobody will go on with: it takes room. What was only cut goes on when it is copied again. */
async function orDrop(
  { remote, copying }: Journey,
  { id, path }: { readonly id: string; readonly path: string },
  action: () => Promise<void>,
): Promise<void> {
  try {
    await action()
  } catch (error) {
    const isCut = error instanceof Interrupted || SandwireError.from(error).row.retryable
    // What cannot be removed now, the sandbox forgets after a day.
    if (!isCut) await remote.drop(id, path).catch(() => undefined)
    else copying.keep(path)
    throw error
  }
}

export async function finishUpload(journey: Journey, id: string, finish: Finish): Promise<void> {
  await insist(
    journey,
    () => journey.remote.finish(id, finish),
    () => 0,
  )
}

/** Sends pieces until the source or the size ends; returns how many bytes there were. */
export async function sendPieces(
  journey: Journey,
  source: PieceSource,
  { id, path, sizeBytes }: { readonly id: string; readonly path: string; readonly sizeBytes: number },
): Promise<number> {
  const { remote, copying } = journey
  let offset = await insist(
    journey,
    () => remote.received(id, path),
    () => 0,
  )
  if (offset > sizeBytes) {
    await remote.drop(id, path)
    offset = 0
  }
  copying.moved(offset)
  const arrived = (received: number): void => {
    copying.moved(received - offset)
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
      arrived(received === offset ? await putPiece(journey, { id, path }, offset, piece) : received)
    }
    await insist(journey, sendOrAsk, () => offset)
  }
  return offset
}

/** Sends one piece. Where the other side has other bytes than was thought, because an answer was cut, it says which. */
async function putPiece(
  { remote }: Journey,
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
