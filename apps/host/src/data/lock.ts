import { dlopen } from 'bun:ffi'
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { shape } from '@sandwire/protocol'
import { identifyProcess, isRunning } from './process-identity.ts'

const LOCK_EX_NB = 2 | 4
/** A lock can be removed between opening and taking it; more often than this somebody plays with the file. */
const MAX_TRIES = 5

const holderShape = shape.record({
  pid: shape.whole(1, 2 ** 31),
  startTicks: shape.offset,
  /** Public address, once it is served. */
  url: shape.optional(shape.text(256)),
  /** Where the host answers control and `sandwire signin`. */
  socket: shape.optional(shape.text(4096)),
})

/** Who holds a data folder. */
export type LockHolder = shape.Decoded<typeof holderShape>

export type LockOutcome =
  | { readonly kind: 'taken'; readonly lock: DataLock }
  | { readonly kind: 'held'; readonly holder: LockHolder | undefined }

/** Reads who holds the lock, if its file says so. */
export function readHolder(file: string): LockHolder | undefined {
  try {
    return holderShape.decode(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    // No lock, or one whose holder died while writing.
    return undefined
  }
}

function flock(fd: number): boolean {
  const libc = dlopen('libc.so.6', { flock: { args: ['i32', 'i32'], returns: 'i32' } })
  return libc.symbols.flock(fd, LOCK_EX_NB) === 0
}

/** Whether the descriptor is the file that the path names now, not one that was removed. */
function isSame(fd: number, file: string): boolean {
  const named = statSync(file, { throwIfNoEntry: false })
  return named !== undefined && named.ino === fstatSync(fd).ino
}

/**
 * The right to use a data folder, for one host at a time. The kernel holds it (`flock`) and lets go when the host dies however
 * it dies; the text in the file says who it is.
 */
export class DataLock {
  readonly #file: string
  readonly #fd: number

  private constructor(file: string, fd: number) {
    this.#file = file
    this.#fd = fd
  }

  /** Takes the lock; a dead host's is taken over. */
  static take(file: string): LockOutcome {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const fd = openSync(file, 'a+', 0o600)
      const holder = readHolder(file)
      const isHeld = !flock(fd) || (holder !== undefined && holder.pid !== process.pid && isRunning(holder))
      if (!isHeld && isSame(fd, file)) {
        const lock = new DataLock(file, fd)
        lock.#describeSelf()
        return { kind: 'taken', lock }
      }
      closeSync(fd)
      if (isHeld) return { kind: 'held', holder }
    }
    return { kind: 'held', holder: undefined }
  }

  /** Says where the holder can be reached. */
  describe(where: { readonly url?: string; readonly socket?: string }): void {
    const self = identifyProcess(process.pid)
    ftruncateSync(this.#fd)
    writeSync(this.#fd, `${JSON.stringify({ ...self, ...where })}\n`)
  }

  /** Without room for it the lock holds all the same; only who has it is not told. */
  #describeSelf(): void {
    try {
      this.describe({})
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
    }
  }

  release(): void {
    rmSync(this.#file, { force: true })
    closeSync(this.#fd)
  }
}
