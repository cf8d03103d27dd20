import { becomeSubreaper, peekDeadChild, reapChild } from '../linux/process-calls.ts'

/** Whose exit statuses are awaited by somebody else. */
export interface AwaitedChildren {
  add(pid: number): void
  delete(pid: number): void
}

/**
 * Takes in processes whose parents have ended, and clears them away when they end themselves, so that none stays as a
 * zombie. The status of an awaited child is left to Bun, which waits for each by its number.
 */
export class OrphanReaper implements AwaitedChildren {
  readonly #awaited = new Set<number>()

  /** Begins to take processes in. False when the kernel refuses; as process 1 they come without asking. */
  start(): boolean {
    process.on('SIGCHLD', () => this.reap())
    return becomeSubreaper()
  }

  add(pid: number): void {
    this.#awaited.add(pid)
  }

  /** The status was taken, so the number may soon be another process's. */
  delete(pid: number): void {
    this.#awaited.delete(pid)
    this.reap()
  }

  /** Clears away what has ended, up to an awaited child: behind that one it goes on once its status was taken. */
  reap(): void {
    for (let pid = peekDeadChild(); pid > 0 && !this.#awaited.has(pid); pid = peekDeadChild()) reapChild(pid)
  }
}
