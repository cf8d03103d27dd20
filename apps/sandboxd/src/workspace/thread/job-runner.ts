import { SandwireError } from '@sandwire/protocol'
import type { Found } from '../files.ts'
import type { Job } from '../files/context.ts'
import type { FileResults, FileThread } from './messages.ts'
import type { Send } from './serve-thread.ts'

/** Time slice of one job. */
const SLICE_MS = 4
/** Parts sent but not yet consumed; a job that is this far ahead waits. */
const MAX_UNTAKEN = 4

export type AnyJob = Job<FileResults[keyof FileResults], readonly Found[]>

interface Running {
  readonly id: number
  readonly job: AnyJob
  untaken: number
}

interface RunnerDependencies {
  readonly send: Send<FileThread>
  /** Runs the action after pending messages. */
  readonly later: (action: () => void) => void
  readonly now: () => number
}

/** Runs jobs round-robin, so that a long one does not block the others. */
export class JobRunner {
  readonly #deps: RunnerDependencies
  #running: Running[] = []
  #isScheduled = false

  constructor(deps: RunnerDependencies) {
    this.#deps = deps
  }

  start(id: number, job: AnyJob): void {
    this.#running.push({ id, job, untaken: 0 })
    this.#schedule()
  }

  /** Cancels a job; its descriptors are closed. */
  cancel(id: number): void {
    const found = this.#running.find((each) => each.id === id)
    if (found === undefined) return
    this.#drop(found)
    try {
      found.job.return([])
    } catch {
      // Cleaning up failed; the request is canceled, so there is no one to report it to.
    }
  }

  taken(id: number): void {
    const found = this.#running.find((each) => each.id === id)
    if (found === undefined) return
    found.untaken -= 1
    this.#schedule()
  }

  #drop(running: Running): void {
    this.#running = this.#running.filter((each) => each !== running)
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#running.some(canRun)) return
    this.#isScheduled = true
    this.#deps.later(() => {
      this.#isScheduled = false
      this.#turn()
      this.#schedule()
    })
  }

  /** Runs one slice of the job that has waited longest. */
  #turn(): void {
    const next = this.#running.find(canRun)
    if (next === undefined) return
    this.#running = [...this.#running.filter((each) => each !== next), next]
    const endMs = this.#deps.now() + SLICE_MS
    try {
      while (canRun(next) && this.#step(next) && this.#deps.now() < endMs);
    } catch (caught) {
      this.#drop(next)
      const { code, message } = SandwireError.from(caught)
      this.#deps.send({ kind: 'refused', id: next.id, code, message })
    }
  }

  /** Returns false when the job is done. */
  #step(running: Running): boolean {
    const { done, value } = running.job.next()
    if (done === true) {
      this.#drop(running)
      this.#deps.send({ kind: 'done', id: running.id, result: value })
      return false
    }
    if (value === undefined || value.length === 0) return true
    running.untaken += 1
    this.#deps.send({ kind: 'part', id: running.id, part: value })
    return true
  }
}

function canRun({ untaken }: Running): boolean {
  return untaken < MAX_UNTAKEN
}
