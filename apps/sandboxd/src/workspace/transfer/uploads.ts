import { close, fsync } from 'node:fs'
import { promisify } from 'node:util'
import { KeyedSerializer } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { writeBytes } from '../files/file-bytes.ts'
import type { FileStat } from '../files.ts'
import { systemError } from '../beneath/file-error.ts'
import type { FinishedUpload, OpenUpload, TransferFiles } from './transfer-files.ts'

/** Finished uploads that are remembered, so that a client can repeat a request whose response was lost. */
const MAX_REMEMBERED = 1_000

const syncFd = promisify(fsync)
const closeFd = promisify(close)

/** A piece does not start where the upload ends. */
export class WrongOffset extends SandwireError {
  readonly received: number

  constructor(received: number) {
    super('conflict', `Cannot append to the upload: ${received} bytes have been received`)
    this.received = received
  }
}

/** Identifies an upload. */
export interface UploadName {
  readonly id: string
  readonly path: string
}

/** Uploads in pieces. Each piece is appended to a hidden file beside the target, so uploads survive a restart. */
export class Uploads {
  readonly #transfer: TransferFiles
  /** A request whose connection was lost may still be running when the next one arrives. */
  readonly #serializer = new KeyedSerializer()
  readonly #finished = new Map<string, { readonly path: string; readonly stat: FileStat }>()

  constructor(transfer: TransferFiles) {
    this.#transfer = transfer
  }

  async received({ id, path }: UploadName): Promise<number> {
    const file = await this.#transfer.openUpload(path, id, false)
    if (file === undefined) return 0
    await closeFd(file.fd)
    return file.sizeBytes
  }

  /** Appends bytes at `offset`; returns the new size. Throws `WrongOffset`. */
  append(name: UploadName, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<number> {
    return this.#serializer.run(name.id, async () => {
      const file = await this.#transfer.openUpload(name.path, name.id, true)
      if (file === undefined) throw new SandwireError('internal', 'Cannot begin the upload')
      try {
        if (file.sizeBytes !== offset) throw new WrongOffset(file.sizeBytes)
        return await appendAll(file, bytes)
      } finally {
        await closeFd(file.fd)
      }
    })
  }

  /** Moves the upload into place. Idempotent. */
  finish(name: UploadName, finished: FinishedUpload): Promise<FileStat> {
    return this.#serializer.run(name.id, async () => {
      const { id, path } = name
      const done = this.#finished.get(id)
      const isDone = done?.path === path && done.stat.sizeBytes === finished.sizeBytes
      // An empty file has no pieces.
      const file = await this.#transfer.openUpload(path, id, finished.sizeBytes === 0 && !isDone)
      // Bytes received since then belong to a new upload of the same file.
      if (file === undefined && isDone) return done.stat
      if (file !== undefined) await syncAndClose(file)
      const stat = await this.#transfer.finishUpload(path, id, finished)
      this.#remember(name, stat)
      return stat
    })
  }

  drop(name: UploadName): Promise<boolean> {
    return this.#serializer.run(name.id, () => this.#transfer.dropUpload(name.path, name.id))
  }

  #remember({ id, path }: UploadName, stat: FileStat): void {
    this.#finished.set(id, { path, stat })
    const [oldest] = this.#finished.keys()
    if (this.#finished.size > MAX_REMEMBERED && oldest !== undefined) this.#finished.delete(oldest)
  }
}

/** Bytes received before a disconnect are kept. */
async function appendAll(file: OpenUpload, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  let failure: unknown
  async function* untilCut(): AsyncGenerator<Uint8Array> {
    try {
      yield* bytes
    } catch (error) {
      failure = error
    }
  }
  const written = await writeBytes(file.fd, untilCut(), file.sizeBytes)
  if (failure !== undefined) throw SandwireError.from(failure)
  return file.sizeBytes + written
}

async function syncAndClose({ fd }: OpenUpload): Promise<void> {
  try {
    await syncFd(fd)
  } catch (error) {
    throw systemError(error, 'Cannot finish the upload')
  } finally {
    await closeFd(fd)
  }
}
