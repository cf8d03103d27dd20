import type { Batch, Outbox } from './outbox.ts'
import { dueInMs, type OutboxMessage } from './policy.ts'

export interface DeliveryDependencies {
  readonly outbox: Outbox
  /** Resolves when the destination has confirmed the batch; receivers must tolerate duplicates. */
  readonly send: (batch: Batch) => Promise<void>
  readonly onFailure?: (error: unknown, message: OutboxMessage) => void
  /** Sets the object's alarm, which calls `deliver`, for this time or sooner. */
  readonly wakeBy: (atMs: number) => Promise<void>
  readonly nowMs: () => number
  /** Delays up to `maxSleepMs` are slept in memory, longer ones wait for the alarm. Absent: all of them do. */
  readonly sleepInMemory?: { readonly sleep: (ms: number) => Promise<void>; readonly maxSleepMs: number }
  /** Lanes sent at a time; absent: all of them. */
  readonly maxConcurrent?: number
}

/** Sends the messages of an outbox: the destinations in parallel, the messages of one destination in order. */
export class OutboxDelivery {
  readonly #deps: DeliveryDependencies
  /** Lanes being sent, each with the error that ended it. */
  readonly #running = new Map<string, Promise<readonly unknown[]>>()
  /** Lanes that sleep before a retry; a newer run of the lane replaces the sleep. */
  readonly #sleeping = new Map<string, object>()

  constructor(deps: DeliveryDependencies) {
    this.#deps = deps
  }

  /**
   * Sends what is due, or everything with `force`. Resolves when every lane is empty or waits for its next attempt; returns
   * the errors of the failed attempts.
   */
  async deliver({ force = false }: { readonly force?: boolean } = {}): Promise<readonly unknown[]> {
    const { outbox, nowMs, maxConcurrent = Number.POSITIVE_INFINITY } = this.#deps
    const heads = force ? outbox.heads() : outbox.due(nowMs())
    const queue = heads.values()
    const errors: unknown[] = []
    const work = async (): Promise<void> => {
      for (const head of queue) errors.push(...(await this.#join(head)))
    }
    await Promise.all(Array.from({ length: Math.min(maxConcurrent, heads.length) }, work))
    return errors
  }

  #laneOf({ seq, destination }: OutboxMessage): string {
    return this.#deps.outbox.policy.order === 'fifo' ? destination : String(seq)
  }

  #join(head: OutboxMessage): Promise<readonly unknown[]> {
    const running = this.#running.get(this.#laneOf(head))
    if (running === undefined) return this.#start(head)
    // A message after one that is being sent goes out in the same run; a lane of one message has none after it.
    return this.#deps.outbox.policy.order === 'fifo' ? running : Promise.resolve([])
  }

  #start(head: OutboxMessage): Promise<readonly unknown[]> {
    const lane = this.#laneOf(head)
    const { promise, resolve } = Promise.withResolvers<readonly unknown[]>()
    this.#running.set(lane, promise)
    this.#sleeping.delete(lane)
    void this.#run(head).then(resolve, (error: unknown) => resolve([error]))
    return promise
  }

  async #run(head: OutboxMessage): Promise<readonly unknown[]> {
    const { outbox, send, onFailure, nowMs } = this.#deps
    try {
      for (;;) {
        const batch = outbox.nextBatch(head)
        if (batch === undefined) return []
        try {
          await send(batch)
          outbox.confirm(batch)
        } catch (error) {
          outbox.fail(batch, nowMs())
          onFailure?.(error, batch[0])
          await this.#scheduleRetry(head)
          return [error]
        }
      }
    } finally {
      this.#running.delete(this.#laneOf(head))
    }
  }

  async #scheduleRetry(head: OutboxMessage): Promise<void> {
    const { outbox, nowMs, wakeBy, sleepInMemory } = this.#deps
    const [next] = outbox.nextBatch(head) ?? []
    if (next === undefined) return
    const waitMs = dueInMs(next, outbox.policy, nowMs())
    if (sleepInMemory === undefined || waitMs > sleepInMemory.maxSleepMs) return wakeBy(nowMs() + waitMs)
    const lane = this.#laneOf(head)
    const sleep = {}
    this.#sleeping.set(lane, sleep)
    void sleepInMemory.sleep(waitMs).then(() => {
      if (this.#sleeping.get(lane) === sleep && !this.#running.has(lane)) void this.#start(head)
    })
  }
}
