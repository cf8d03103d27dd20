import { ftruncateSync, readFileSync, writeSync } from 'node:fs'
import { LockFile } from '@sandwire/lock-file'
import { schema } from '@sandwire/protocol'
import { identifyProcess, isRunning } from './process-identity.ts'

const holderSchema = schema.record({
  pid: schema.integer(1, 2 ** 31),
  startTicks: schema.nonNegativeInteger,
  /** Public URL, once it is served. */
  url: schema.optional(schema.text(256)),
  /** Socket of the host API. */
  socket: schema.optional(schema.text(4096)),
})

/** The host that holds a data folder. */
export type LockHolder = schema.Decoded<typeof holderSchema>

export type LockOutcome =
  | { readonly kind: 'taken'; readonly lock: DataLock }
  | { readonly kind: 'held'; readonly holder: LockHolder | undefined }

/** Reads the holder from the lock file; undefined when unknown. */
export function readHolder(file: string): LockHolder | undefined {
  try {
    return holderSchema.decode(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    // No lock, or one whose holder died while writing.
    return undefined
  }
}

/** Locks a data folder for one host at a time. The content of the lock file identifies the holder. */
export class DataLock {
  readonly #lock: LockFile

  private constructor(lock: LockFile) {
    this.#lock = lock
  }

  /** Takes the lock; the lock of a dead host is free. `isCopy`: the file names the holder of the file that it was copied from. */
  static take(file: string, { isCopy = false }: { readonly isCopy?: boolean } = {}): LockOutcome {
    const opened = LockFile.tryOpen(file)
    const holder = readHolder(file)
    if (opened === undefined) return { kind: 'held', holder }
    if (!isCopy && holder !== undefined && holder.pid !== process.pid && isRunning(holder)) {
      opened.close()
      return { kind: 'held', holder }
    }
    const lock = new DataLock(opened)
    lock.#describeSelf()
    return { kind: 'taken', lock }
  }

  /** Records where the holder can be reached. */
  describe(where: { readonly url?: string; readonly socket?: string }): void {
    const self = identifyProcess(process.pid)
    ftruncateSync(this.#lock.fd)
    writeSync(this.#lock.fd, `${JSON.stringify({ ...self, ...where })}\n`)
  }

  /** On a full disk the lock is held without its description. */
  #describeSelf(): void {
    try {
      this.describe({})
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
    }
  }

  release(): void {
    this.#lock[Symbol.dispose]()
  }
}
