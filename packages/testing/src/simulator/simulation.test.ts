import { describe, expect, test } from 'bun:test'
import { INJECTED_BUGS } from './injected-bugs.ts'
import { simulate } from './simulation.ts'

/** `npm run soak` runs 100,000. */
const SEEDS = Number(process.env['SANDWIRE_SEEDS'] ?? 1_000)
const FIRST = Number(process.env['SANDWIRE_SEED'] ?? 1)
/** Seeds tried per injected bug before it counts as undetected. */
const BUG_SEEDS = 1_500

test('[R14] [A9] a session delivers every byte and event exactly once under faults, for every seed', () => {
  const kinds = new Set<string>()
  let disconnects = 0
  let shortAuthorizations = 0
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const result = simulate(seed)
    disconnects += result.disconnects
    shortAuthorizations += result.shortAuthorizations
    kinds.add(result.scenario.kind)
  }
  if (SEEDS < 1000) return
  expect(disconnects).toBeGreaterThan(SEEDS)
  expect(shortAuthorizations).toBeGreaterThan(SEEDS / 10)
  expect(kinds.size).toBe(7)
}, 600_000)

/** The first seed whose run fails, or undefined. */
function firstFailure(name: string): number | undefined {
  const bug = INJECTED_BUGS[name]
  if (bug === undefined) throw new Error(`there is no injected bug "${name}"`)
  for (let seed = 1; seed <= BUG_SEEDS; seed += 1) {
    try {
      simulate(seed, bug)
    } catch {
      // The checks detected the bug.
      return seed
    }
  }
  return undefined
}

describe.if(SEEDS >= 1000)('the simulator detects that', () => {
  test.each(Object.keys(INJECTED_BUGS))(
    '%s',
    (name) => {
      expect(firstFailure(name)).toBeDefined()
    },
    120_000,
  )
})
