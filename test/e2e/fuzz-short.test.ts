import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { runCampaign, startFuzzedSandboxd } from '../fuzz/campaign.ts'
import { TARGETS } from '../fuzz/targets.ts'
import type { RunningSandboxd } from './support/sandboxd.ts'

/** Time per decoder. `npm run fuzz` runs longer and also checks for memory growth. */
const BUDGET_MS = 1_200

/** `FUZZ_SEED=N` replays a run. */
const seed = Number(process.env['FUZZ_SEED'] ?? crypto.getRandomValues(new Uint32Array(1))[0])

describe(`fuzzed decoders, FUZZ_SEED=${seed}`, () => {
  let sandboxd: RunningSandboxd

  beforeAll(async () => {
    sandboxd = await startFuzzedSandboxd()
  })

  afterAll(async () => {
    expect(await sandboxd.stop()).toEqual({ code: 0, signal: null })
  })

  test.each(TARGETS.map((target) => [target.name, target] as const))('%s', async (_, target) => {
    const report = await runCampaign(sandboxd, { target, seed, maxAttacks: Infinity, maxMs: BUDGET_MS })
    expect(report.attacks).toBeGreaterThan(5)
  })
})
