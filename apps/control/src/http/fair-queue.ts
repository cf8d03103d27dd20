/** Cost of all requests that run at once. Each step of a request waits for a step of every other one that runs. */
const MAX_RUNNING = 12
/** Cost of the requests of one caller that run at once. */
export const MAX_RUNNING_OF_CALLER = 4
/** A request that runs for longer, times its cost, waits for something else than the CPU and no longer counts. */
export const RUN_MS = 50
/** Requests of one caller that wait. */
export const MAX_WAITING_OF_CALLER = 256

/** Who sent a request. Groups take turns, and so do the callers of a group. */
export interface Caller {
  readonly group: 'account' | 'unverified' | 'anonymous'
  /** Account or network address. */
  readonly key: string
}

/** A request in the queue. */
export interface Turn {
  readonly caller: Caller
  readonly cost: number
  /** Resolves when the request may run. */
  readonly admitted: Promise<void>
  isWaiting: boolean
}

interface Waiter extends Turn {
  readonly admit: () => void
}

/**
 * Decides which requests run, so that a caller with many requests delays those of others by a few at most. Groups take turns,
 * then the callers of a group; requests of one caller run in order. There is no timer: places of requests that ran for long are
 * given away by the next call, and `poll` is one.
 */
export class FairQueue {
  /** Running requests, and when they no longer count. A canceled request never leaves. */
  readonly #running = new Map<Turn, number>()
  /** Waiting requests by group and caller, both in the order of their turns. */
  readonly #waiting = new Map<string, Map<string, Waiter[]>>()

  /** Adds a request; undefined if too many of its caller wait. */
  enter(caller: Caller, cost: number, nowMs: number): Turn | undefined {
    const callers = this.#waiting.get(caller.group) ?? new Map<string, Waiter[]>()
    const waiters = callers.get(caller.key) ?? []
    if (waiters.length >= MAX_WAITING_OF_CALLER) return undefined
    const { promise: admitted, resolve: admit } = Promise.withResolvers<void>()
    const turn = {
      caller,
      cost: Math.min(cost, MAX_RUNNING_OF_CALLER),
      admitted,
      admit,
      isWaiting: true,
    }
    waiters.push(turn)
    this.#waiting.set(caller.group, callers.set(caller.key, waiters))
    this.poll(nowMs)
    return turn
  }

  /** Removes a request that has its response or stopped waiting. */
  leave(turn: Turn, nowMs: number): void {
    this.#running.delete(turn)
    if (turn.isWaiting) {
      const { group, key } = turn.caller
      const waiters = this.#waiting.get(group)?.get(key) ?? []
      this.#setWaiters(
        turn.caller,
        waiters.filter((waiter) => waiter !== turn),
      )
    }
    this.poll(nowMs)
  }

  /** Admits all requests for which there is room. */
  poll(nowMs: number): void {
    for (const [turn, untilMs] of this.#running) if (untilMs <= nowMs) this.#running.delete(turn)
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      next.isWaiting = false
      this.#running.set(next, nowMs + RUN_MS * next.cost)
      next.admit()
    }
  }

  /** Takes the next request that may run, and moves its group and caller behind the others. */
  #next(): Waiter | undefined {
    if (this.#costOf() >= MAX_RUNNING) return undefined
    for (const [group, callers] of this.#waiting)
      for (const [key, [first, ...rest]] of callers) {
        if (first === undefined || this.#costOf(first.caller) + first.cost > MAX_RUNNING_OF_CALLER) continue
        this.#waiting.delete(group)
        callers.delete(key)
        this.#waiting.set(group, callers)
        this.#setWaiters(first.caller, rest)
        return first
      }
    return undefined
  }

  #setWaiters({ group, key }: Caller, waiters: Waiter[]): void {
    const callers = this.#waiting.get(group)
    if (waiters.length > 0) callers?.set(key, waiters)
    else callers?.delete(key)
    if (callers?.size === 0) this.#waiting.delete(group)
  }

  /** Cost of what runs, of one caller or of all. */
  #costOf(caller?: Caller): number {
    let sum = 0
    for (const turn of this.#running.keys())
      if (caller === undefined || (turn.caller.group === caller.group && turn.caller.key === caller.key))
        sum += turn.cost
    return sum
  }
}
