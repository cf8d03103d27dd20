import { becomeSubreaper, peekDeadChild, reapChild } from '../linux/process-calls.ts'

/** Children whose exit status Bun collects. */
export interface AwaitedChildren {
  add(pid: number): void
  delete(pid: number): void
}

/**
 * Adopts orphaned descendants and reaps them when they exit, so that none stays a zombie. The status of an awaited child is
 * left to Bun, which waits for each by pid.
 */
export class OrphanReaper implements AwaitedChildren {
  readonly #awaited = new Set<number>()
  #isScheduled = false

  /** Starts adopting. False when the kernel refuses; process 1 adopts orphans in any case. */
  start(): boolean {
    process.on('SIGCHLD', () => this.#schedule())
    return becomeSubreaper()
  }

  add(pid: number): void {
    this.#awaited.add(pid)
  }

  /** Bun has collected the status, so the pid may be reused. */
  delete(pid: number): void {
    this.#awaited.delete(pid)
    this.#schedule()
  }

  /** Once per turn, however many children exit in it: the kernel searches all children. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.reap()
    })
  }

  /** Reaps up to the first awaited child; `delete` continues after it. */
  reap(): void {
    for (let pid = peekDeadChild(); pid > 0 && !this.#awaited.has(pid); pid = peekDeadChild()) reapChild(pid)
  }
}
