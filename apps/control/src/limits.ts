import { z } from 'zod'

/** Larger than any useful limit. */
const MAX_COUNT = 2 ** 40

/** An integer of a range; the error names the range. */
export function integer(min: number, max: number): z.ZodInt {
  const expected = `expected a whole number from ${min} to ${max}`
  return z.int(expected).min(min, expected).max(max, expected)
}

const perMinute = integer(0, MAX_COUNT)

/** Rate limits; 0 disables one. A whole minute's budget may be used at once. */
export const limitsSchema = z.strictObject({
  /** Per network address: an IPv4 address, or the /64 of an IPv6 address. Loopback is exempt in local mode. */
  attachesPerMinutePerAddress: perMinute.default(300),
  /** Per account; absent: the default of the mode. */
  attachesPerMinutePerUser: perMinute.exactOptional(),
  /** Cost of workspace requests per account; absent: the default of the mode. */
  workspaceCostPerMinutePerUser: perMinute.exactOptional(),
  /** Requests without a valid credential, per network address. */
  strangersPerMinutePerAddress: perMinute.default(300),
  /** Concurrent sessions; takes effect at the next start of a sandbox. */
  sessionsPerSandbox: integer(1, 10_000).default(1_000),
  /** Output of one sandbox to one account; takes effect at the next start of a sandbox. */
  outputBytesPerSecond: integer(0, MAX_COUNT).default(0),
})

export type Limits = Required<z.infer<typeof limitsSchema>>

/** Enough for scripts of the machine's owner; as many as its other requests. */
const LOCAL_REQUESTS_PER_MINUTE = 30_000
/** Enough for a hundred terminals that all reconnect. */
const OPEN_ATTACHES_PER_MINUTE = 600
/** Twenty folders a second, or four searches. */
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
