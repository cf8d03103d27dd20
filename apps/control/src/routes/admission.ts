import { raceTimeout } from '@sandwire/async'
import { ERRORS, SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { Buckets } from '../http/buckets.ts'
import type { Callers } from '../http/callers.ts'
import { type Caller, FairQueue, RUN_MS, type Turn } from '../http/fair-queue.ts'
import { costOf } from '../http/request-cost.ts'
import type { AppEnv } from './context.ts'

/** Longest wait of a request for its turn. */
const MAX_WAIT_MS = 10_000
/** Interval at which a waiting request looks at the queue itself: requests that were canceled never leave it. */
const POLL_MS = 1_000
/** Refusals that one caller gets at once. */
const PROMPT_PER_SECOND = 10
const PROMPT_BURST = 20
const MAX_CALLERS = 10_000
/** Delay of further refusals, which clients that ignore them wait for. */
const REFUSAL_DELAY_MS = 1_000

export interface AdmissionDependencies {
  readonly callers: Callers
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
}

function tooMany(): SandwireError {
  return new SandwireError('rate_limited', 'Too many requests at once', { retryAfterMs: REFUSAL_DELAY_MS })
}

function isRateLimit(error: Error | undefined): boolean {
  return error instanceof SandwireError && ERRORS[error.code].status === 429
}

/**
 * Runs requests by turns, so that no caller delays others by sending many at once. Refusals by a rate limit are sent late to
 * clients that get many of them: a client that does not wait then costs as little as one that does.
 */
export function admitRequests({ callers, nowMs, sleep }: AdmissionDependencies): MiddlewareHandler<AppEnv> {
  const queue = new FairQueue()
  const prompt = new Buckets({ perSecond: PROMPT_PER_SECOND, burst: PROMPT_BURST, max: MAX_CALLERS })

  const wait = async (turn: Turn, signal: AbortSignal): Promise<void> => {
    const startedMs = nowMs()
    // A client that disconnects gives its place to the next one.
    signal.addEventListener('abort', () => queue.leave(turn, nowMs()), { once: true })
    while (turn.isWaiting) {
      await raceTimeout(turn.admitted, POLL_MS, undefined)
      queue.poll(nowMs())
      if (turn.isWaiting && (signal.aborted || nowMs() - startedMs >= MAX_WAIT_MS)) {
        queue.leave(turn, nowMs())
        throw tooMany()
      }
    }
  }
  /** Before the response of a caller that was refused. */
  const delayRefusal = async ({ group, key }: Caller): Promise<void> => {
    if (!prompt.take(`${group} ${key}`, nowMs())) await sleep(REFUSAL_DELAY_MS)
  }

  return async (context, next) => {
    const request = context.req.raw
    const caller = await callers.find(request)
    const turn = queue.enter(caller, costOf(request), nowMs())
    if (turn === undefined) {
      await delayRefusal(caller)
      throw tooMany()
    }
    await wait(turn, request.signal)
    // Others need not wait for a request that waits itself.
    const timer = setTimeout(() => queue.poll(nowMs()), RUN_MS * turn.cost)
    try {
      await next()
    } finally {
      clearTimeout(timer)
      queue.leave(turn, nowMs())
    }
    if (isRateLimit(context.error)) await delayRefusal(caller)
  }
}
