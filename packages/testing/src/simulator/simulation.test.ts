import { expect, test } from 'bun:test'
import { simulate } from './simulation.ts'

const SEEDS = Number(process.env['SANDWIRE_SEEDS'] ?? 10_000)
const FIRST = Number(process.env['SANDWIRE_SEED'] ?? 1)

test('a simulated session is exact under faults, for every seed', () => {
  let cuts = 0
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) cuts += simulate(seed).cuts
  if (SEEDS >= 1000) expect(cuts).toBeGreaterThan(SEEDS)
}, 600_000)
