import { z } from 'zod'
import { whole } from '../limits.ts'

const MAX_SECONDS = 7 * 24 * 60 * 60

/** Limits of runs, and their defaults. */
export const runSettingsSchema = z.strictObject({
  /** Runs of an account that work at the same time; further ones wait. */
  concurrent: whole(1, 10_000).default(8),
  /** Runs of an account that wait. */
  queued: whole(0, 100_000).default(200),
  /** Runs that an account may create in a minute; 0: any number. */
  perMinute: whole(0, 100_000).default(120),
  /** Ended runs of an account that are kept; the oldest are deleted. */
  kept: whole(1, 100_000).default(1_000),
  /** Days for which an ended run is kept. */
  keepDays: whole(1, 3_650).default(30),
  /** Model of runs that name none; absent: the agent's own default. */
  model: z
    .string()
    .regex(/^[A-Za-z0-9._:/@[\]-]{1,128}$/, 'expected the name of a model')
    .exactOptional(),
  /** Models that a run may use, each exact or a prefix followed by `*`; empty: all. */
  models: z.array(z.string().min(1).max(128)).max(64).default([]),
  /** Longest time that an agent works; also the default. */
  wallClockSeconds: whole(1, MAX_SECONDS).default(3_600),
  /** Longest time without output of an agent; also the default. */
  idleSeconds: whole(1, 24 * 60 * 60).default(600),
  /** Until a pending approval is denied. */
  approvalSeconds: whole(1, MAX_SECONDS).default(600),
  /** Most that a run may cost, in US dollars; also the default. */
  budgetUsd: z.number().min(0.01).max(100_000).default(10),
  /** Requests to the model that a run may make; 0: any number. */
  turns: whole(0, 100_000).default(0),
  /** Further agents, which speak the Agent Client Protocol. */
  agents: z
    .array(
      z.strictObject({
        name: z
          .string()
          .regex(/^(?!(?:claude|opencode)$)[a-z][a-z0-9-]{0,31}$/, 'expected a new name in lower case'),
        title: z.string().min(1).max(64).exactOptional(),
        /** Path in the sandbox, or a name on its PATH. */
        program: z.string().min(1).max(4_096),
        args: z.array(z.string().max(4_096)).max(64).default([]),
        /** `{gateway}`, `{token}` and `{model}` are replaced. */
        env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/), z.string().max(4_096)).default({}),
      }),
    )
    .max(32)
    .default([]),
  /** Account that owns the runs of Workers that bind `CLAUDE_SANDBOX`; absent: they cannot start any. */
  bindingAccount: z.string().min(1).max(256).exactOptional(),
})

export type RunSettings = z.infer<typeof runSettingsSchema>
