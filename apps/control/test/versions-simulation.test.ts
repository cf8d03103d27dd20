import { expect, test } from 'bun:test'
import { simulateVersions } from './support/versions-simulator/versions-simulator.ts'

/** `npm run soak` runs a thousand. */
const SEEDS = Number(process.env['SANDWIRE_SEEDS'] ?? 100)
const FIRST_SEED = Number(process.env['SANDWIRE_SEED'] ?? 1)

test('versions survive crashes of control, sandboxes and stores', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) await simulateVersions(seed)
  expect(SEEDS).toBeGreaterThan(0)
})
