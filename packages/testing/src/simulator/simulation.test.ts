import { describe, expect, test } from 'bun:test'
import { SABOTAGES } from './sabotage.ts'
import { simulate } from './simulation.ts'

/** `npm run soak` runs 100,000. */
const SEEDS = Number(process.env['SANDWIRE_SEEDS'] ?? 1_000)
const FIRST = Number(process.env['SANDWIRE_SEED'] ?? 1)
/** A fault that is not noticed within so many seeds is not noticed. */
const SABOTAGE_SEEDS = 1_500

test('[R14] [A9] a session is exact under faults, for every seed', () => {
  const themes = new Set<string>()
  let cuts = 0
  let stays = 0
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const result = simulate(seed)
    cuts += result.cuts
    stays += result.stays
    themes.add(result.scenario.theme)
  }
  if (SEEDS < 1000) return
  expect(cuts).toBeGreaterThan(SEEDS)
  expect(stays).toBeGreaterThan(SEEDS / 10)
  expect(themes.size).toBe(7)
}, 600_000)

/** The first seed whose run fails, or undefined. */
function firstFailure(name: string): number | undefined {
  const sabotage = SABOTAGES[name]
  if (sabotage === undefined) throw new Error(`there is no sabotage "${name}"`)
  for (let seed = 1; seed <= SABOTAGE_SEEDS; seed += 1) {
    try {
      simulate(seed, sabotage)
    } catch {
      // This is what a sabotage is for.
      return seed
    }
  }
  return undefined
}

// A simulator that cannot fail proves nothing.
describe.if(SEEDS >= 1000)('the simulator notices that', () => {
  test.each(Object.keys(SABOTAGES))(
    '%s',
    (name) => {
      expect(firstFailure(name)).toBeDefined()
    },
    120_000,
  )
})
