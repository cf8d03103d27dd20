import { z } from 'zod'

/** Bigger than anybody has a use for, small enough to count with. */
const MAX_COUNT = 2 ** 40

/** A whole number that says in its own words what it may be. */
export function whole(min: number, max: number): z.ZodInt {
  const expected = `expected a whole number from ${min} to ${max}`
  return z.int(expected).min(min, expected).max(max, expected)
}

const perMinute = whole(0, MAX_COUNT)

/** How much may come from whom; 0 switches a limit off. A whole minute's worth may come at once. */
export const limitsSchema = z.strictObject({
  /** From one network address: an IPv4 address, or the /64 of an IPv6 one. Loopback is exempt in local mode. */
  attachesPerMinutePerAddress: perMinute.default(300),
  /** By one account, wherever it comes from; absent: what fits the mode. */
  attachesPerMinutePerUser: perMinute.exactOptional(),
  /** By one account: requests that make a sandbox work hard, by their cost; absent: what fits the mode. */
  workspaceCostPerMinutePerUser: perMinute.exactOptional(),
  /** From one network address, without a good credential. */
  strangersPerMinutePerAddress: perMinute.default(300),
  /** At a time in one sandbox; counts from its next start on. */
  sessionsPerSandbox: whole(1, 10_000).default(1_000),
  /** Of output of one sandbox to one person; counts from the sandbox's next start on. */
  outputBytesPerSecond: whole(0, MAX_COUNT).default(0),
})

export type Limits = Required<z.infer<typeof limitsSchema>>

/** Programs of the one user of a machine may loop over anything; that is as much as any requests they may make. */
const LOCAL_REQUESTS_PER_MINUTE = 30_000
/** A person with a hundred terminals that all reconnect, and then some. */
const OPEN_ATTACHES_PER_MINUTE = 600
/** The same of looking into a workspace: twenty folders a second, or four searches. */
const OPEN_WORKSPACE_COST_PER_MINUTE = 1_200

export function completeLimits(limits: z.infer<typeof limitsSchema>, mode: 'local' | 'open'): Limits {
  const isLocal = mode === 'local'
  const attaches = isLocal ? LOCAL_REQUESTS_PER_MINUTE : OPEN_ATTACHES_PER_MINUTE
  const workspaceCost = isLocal ? LOCAL_REQUESTS_PER_MINUTE : OPEN_WORKSPACE_COST_PER_MINUTE
  return {
    ...limits,
    attachesPerMinutePerUser: limits.attachesPerMinutePerUser ?? attaches,
    workspaceCostPerMinutePerUser: limits.workspaceCostPerMinutePerUser ?? workspaceCost,
  }
}
