interface Queue<T> {
  /** Settles when all work queued so far is done. */
  tail: Promise<unknown>
  /** The shared work that was queued last, unless other work was queued after it. */
  shared: Promise<T> | undefined
  pending: number
}

/** Runs work one at a time per key, in the order in which it was queued. Different keys run concurrently. */
export class KeyedSerializer<T = never> {
  readonly #queues = new Map<string, Queue<T>>()

  /** Runs the work after everything that was queued for the key before; failures do not affect later work. */
  run<R>(key: string, work: () => Promise<R>): Promise<R> {
    const queue = this.#queueOf(key)
    queue.shared = undefined
    return this.#add(key, queue, work)
  }

  /** Like `run`, but returns the pending shared work instead if it is the last in the queue. */
  runShared(key: string, work: () => Promise<T>): Promise<T> {
    const queue = this.#queueOf(key)
    if (queue.shared !== undefined) return queue.shared
    const result = this.#add(key, queue, work)
    queue.shared = result
    return result
  }

  #queueOf(key: string): Queue<T> {
    const queue: Queue<T> = this.#queues.get(key) ?? {
      tail: Promise.resolve(),
      shared: undefined,
      pending: 0,
    }
    this.#queues.set(key, queue)
    return queue
  }

  #add<R>(key: string, queue: Queue<T>, work: () => Promise<R>): Promise<R> {
    queue.pending += 1
    const result = this.#runAfterTail(key, queue, work)
    queue.tail = Promise.allSettled([result])
    return result
  }

  async #runAfterTail<R>(key: string, queue: Queue<T>, work: () => Promise<R>): Promise<R> {
    await queue.tail
    try {
      return await work()
    } finally {
      queue.pending -= 1
      // Shared work that can still be joined is last in its queue, so it disappears with the queue.
      if (queue.pending === 0) this.#queues.delete(key)
    }
  }
}
