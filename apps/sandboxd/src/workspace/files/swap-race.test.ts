import { expect, test } from 'bun:test'
import { resolveWithOpenat2 } from '../beneath/resolve.ts'
import { RESOLVERS } from './files.fixture.ts'
import { runNaiveRace, runSwapRace } from './swap-race.fixture.ts'

/** `npm run soak` runs many more. */
const OPERATIONS = 20_000
/** The naive implementation usually fails within hundreds. */
const NAIVE_OPERATIONS = 2_000_000
const TIME_MS = 120_000

test.each([...RESOLVERS])(
  '(threat T14) no access leaves the workspace while folders are swapped with links, with paths resolved by %s',
  async (_, resolve) => {
    const { escapes, done, refused } = await runSwapRace(resolve, OPERATIONS)
    expect(escapes).toBe(0)
    // Both outcomes occurred.
    expect(Math.min(done, refused)).toBeGreaterThan(OPERATIONS / 100)
  },
  TIME_MS,
)

test(
  '(threat T14) a naive check before the open fails under the same swaps',
  async () => {
    expect(await runNaiveRace(resolveWithOpenat2, NAIVE_OPERATIONS)).toBe(1)
  },
  TIME_MS,
)
