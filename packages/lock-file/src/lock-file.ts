import { dlopen } from 'bun:ffi'
import { closeSync, fstatSync, openSync, rmSync, statSync } from 'node:fs'

const LIBC = process.platform === 'darwin' ? 'libSystem.B.dylib' : 'libc.so.6'
const LOCK_EX_NB = 2 | 4
/** The holder removes the file on release, which can happen between our open and our lock. */
const MAX_ATTEMPTS = 5
const POLL_INTERVAL_MS = 50

function flock(fd: number): boolean {
  const libc = dlopen(LIBC, { flock: { args: ['i32', 'i32'], returns: 'i32' } })
  return libc.symbols.flock(fd, LOCK_EX_NB) === 0
}

/** True while the path still names the opened file, so that the lock on it excludes others. */
function isCurrent(fd: number, path: string): boolean {
  const named = statSync(path, { throwIfNoEntry: false })
  return named !== undefined && named.ino === fstatSync(fd).ino
}

/** An exclusive lock on a file, for one process at a time. The kernel (`flock`) releases it when the process dies. */
export class LockFile implements Disposable {
  /** Open for reading and appending. */
  readonly fd: number
  readonly #path: string

  private constructor(path: string, fd: number) {
    this.#path = path
    this.fd = fd
  }

  /** Takes the lock, creating the file if it does not exist; undefined when it is held. */
  static tryOpen(path: string): LockFile | undefined {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const fd = openSync(path, 'a+', 0o600)
      const isLocked = flock(fd)
      if (isLocked && isCurrent(fd, path)) return new LockFile(path, fd)
      closeSync(fd)
      if (!isLocked) return undefined
    }
    return undefined
  }

  /** Releases the lock and keeps the file. */
  close(): void {
    closeSync(this.fd)
  }

  /** Removes the file, then releases the lock. */
  [Symbol.dispose](): void {
    rmSync(this.#path, { force: true })
    closeSync(this.fd)
  }
}

/** Waits until the lock is free and takes it; undefined when it is still held after `timeoutMs`. */
export async function openLockFile(path: string, timeoutMs: number): Promise<LockFile | undefined> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    const lock = LockFile.tryOpen(path)
    if (lock !== undefined || performance.now() > deadlineMs) return lock
    await Bun.sleep(POLL_INTERVAL_MS)
  }
}
