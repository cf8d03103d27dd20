import { createHash } from 'node:crypto'
import { fstatSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError } from '@sandwire/protocol'
import { MAX_REQUEST_BYTES, retryTransfer, type Transfer } from './transfer.ts'
import type { FinishUpload } from './remote-workspace.ts'
import { InterruptedError } from '../errors/errors.ts'

/** Source of the bytes of an upload. */
export interface ChunkSource {
  /** Reads up to this many bytes at an offset; none at the end. */
  readonly read: (offset: number, bytes: number) => Promise<Uint8Array<ArrayBuffer>>
}

const readAt = promisify(read)

/** The same id for the same file and target, so that an interrupted upload is resumed. */
export function uploadId(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)
}

function fileSource(fd: number): ChunkSource {
  return {
    read: async (offset, bytes) => {
      const chunk = new Uint8Array(bytes)
      let filled = 0
      while (filled < bytes) {
        const { bytesRead } = await readAt(fd, chunk, filled, bytes - filled, offset + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return chunk.subarray(0, filled)
    },
  }
}

/** Uploads an open file in chunks. Throws `file_changed` if it changed meanwhile. */
export async function sendOpenFile(
  transfer: Transfer,
  fd: number,
  { id, path }: { readonly id: string; readonly path: string },
): Promise<void> {
  const before = fstatSync(fd, { bigint: true })
  const size = Number(before.size)
  await discardOnFailure(transfer, { id, path }, async () => {
    const end = await sendChunks(transfer, fileSource(fd), { id, path, sizeBytes: size })
    const after = fstatSync(fd, { bigint: true })
    if (end !== size || after.mtimeNs !== before.mtimeNs || after.size !== before.size)
      throw new SandwireError('file_changed', 'it changed while it was read')
    const mode = Number(before.mode) & 0o777
    await finishUpload(transfer, id, { path, size, mode, mtimeMs: Number(before.mtimeNs) / 1e6 })
  })
}

/** Removes the partial upload after a permanent failure. After an interruption it is kept, to be resumed. */
async function discardOnFailure(
  { remote, report }: Transfer,
  { id, path }: { readonly id: string; readonly path: string },
  action: () => Promise<void>,
): Promise<void> {
  try {
    await action()
  } catch (error) {
    const isResumable = error instanceof InterruptedError || SandwireError.from(error).info.retryable
    // If this fails, the sandbox removes it after a day.
    if (!isResumable) await remote.discardUpload(id, path).catch(() => undefined)
    else report.markResumable(path)
    throw error
  }
}

export async function finishUpload(transfer: Transfer, id: string, finish: FinishUpload): Promise<void> {
  await retryTransfer(
    transfer,
    () => transfer.remote.finishUpload(id, finish),
    () => 0,
  )
}

/** Sends chunks up to the size or the end of the source; returns the number of bytes. */
export async function sendChunks(
  transfer: Transfer,
  source: ChunkSource,
  { id, path, sizeBytes }: { readonly id: string; readonly path: string; readonly sizeBytes: number },
): Promise<number> {
  const { remote, report } = transfer
  let offset = await retryTransfer(
    transfer,
    () => remote.getReceivedBytes(id, path),
    () => 0,
  )
  if (offset > sizeBytes) {
    await remote.discardUpload(id, path)
    offset = 0
  }
  report.addBytes(offset)
  const setReceived = (received: number): void => {
    report.addBytes(received - offset)
    offset = received
  }
  while (offset < sizeBytes) {
    const chunk = await source.read(offset, Math.min(MAX_REQUEST_BYTES, sizeBytes - offset))
    if (chunk.length === 0) break
    let isFirst = true
    const sendOrResume = async (): Promise<void> => {
      // After a failure, the chunk may have arrived.
      const received = isFirst ? offset : await remote.getReceivedBytes(id, path)
      isFirst = false
      setReceived(received === offset ? await putChunk(transfer, { id, path }, offset, chunk) : received)
    }
    await retryTransfer(transfer, sendOrResume, () => offset)
  }
  return offset
}

/** Sends one chunk; returns the bytes received so far. A conflict means that an earlier response was lost. */
async function putChunk(
  { remote }: Transfer,
  { id, path }: { readonly id: string; readonly path: string },
  offset: number,
  chunk: Uint8Array<ArrayBuffer>,
): Promise<number> {
  try {
    return await remote.putChunk(id, path, offset, chunk)
  } catch (error) {
    if (SandwireError.from(error).code !== 'conflict') throw error
    return await remote.getReceivedBytes(id, path)
  }
}

/** Chunks of a stream; only the last chunk can be read again. */
export function streamSource(stream: ReadableStream<Uint8Array>): ChunkSource {
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
