import { z } from 'zod'

/** Bigger than anybody has a use for, small enough to count with. */
const MAX_COUNT = 2 ** 40

const perMinute = z.int().min(0).max(MAX_COUNT)

/** How much may come from whom; 0 switches a limit off. A whole minute's worth may come at once. */
export const limitsSchema = z.object({
  /** From one network address: an IPv4 address, or the /64 of an IPv6 one. Loopback is exempt in local mode. */
  attachesPerMinutePerAddress: perMinute.default(300),
  /** By one account, wherever it comes from; absent: what fits the mode. */
  attachesPerMinutePerUser: perMinute.exactOptional(),
  /** From one network address, without a good credential. */
  strangersPerMinutePerAddress: perMinute.default(300),
  /** At a time in one sandbox; counts from its next start on. */
  sessionsPerSandbox: z.int().min(1).max(10_000).default(1_000),
  /** Of output to one attachment; counts from the sandbox's next start on. */
  outputBytesPerSecond: z.int().min(0).max(MAX_COUNT).default(0),
})

export type Limits = Required<z.infer<typeof limitsSchema>>

/** Programs of the one user of a machine may loop over attaches; that is as much as any requests they may make. */
const LOCAL_ATTACHES_PER_MINUTE = 30_000
/** A person with a hundred terminals that all reconnect, and then some. */
const OPEN_ATTACHES_PER_MINUTE = 600

export function completeLimits(limits: z.infer<typeof limitsSchema>, mode: 'local' | 'open'): Limits {
  const usual = mode === 'local' ? LOCAL_ATTACHES_PER_MINUTE : OPEN_ATTACHES_PER_MINUTE
  return { ...limits, attachesPerMinutePerUser: limits.attachesPerMinutePerUser ?? usual }
}
