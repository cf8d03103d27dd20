/** Descriptors below this number are followed; a process has rarely more. */
const TRACKED = 65_536

/**
 * Which descriptors a thread has open, in memory that another thread sees: when the thread ends without closing them, the
 * other one does. A descriptor that is handed over is taken out by whoever got it.
 */
export class OpenTable {
  readonly shared: SharedArrayBuffer
  readonly #open: Uint8Array

  constructor(shared = new SharedArrayBuffer(TRACKED)) {
    this.shared = shared
    this.#open = new Uint8Array(shared)
  }

  add(fd: number): void {
    if (fd < TRACKED) Atomics.store(this.#open, fd, 1)
  }

  remove(fd: number): void {
    if (fd < TRACKED) Atomics.store(this.#open, fd, 0)
  }

  /** Descriptors that are open, all of which are taken out. */
  take(): number[] {
    const fds: number[] = []
    for (const [fd, isOpen] of this.#open.entries()) if (isOpen === 1) fds.push(fd)
    this.#open.fill(0)
    return fds
  }
}

/** Where nobody else would clean up. */
export function untracked(): OpenTable {
  return new OpenTable()
}
