import { expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { rejectionOf } from '@sandwire/testing'
import { checkEnforced } from '../src/providers/capabilities.ts'

const OTHER_LIMITS = { ...DEFAULT_SANDBOX_LIMITS, pids: DEFAULT_SANDBOX_LIMITS.pids + 1 }
const LISTED = { policy: 'allowlist', allow: [] } as const

test.each(['container', 'sprite', 'none'] as const)(
  'limits are refused by name where the isolation is "%s", so that clients can leave them out',
  async (isolation) => {
    const check = (limits: object | undefined) =>
      checkEnforced({ limits }, DEFAULT_SANDBOX_LIMITS, async () => isolation)
    await check(undefined)
    await check(DEFAULT_SANDBOX_LIMITS)
    expect(await rejectionOf(check(OTHER_LIMITS))).toMatchObject({
      code: 'bad_request',
      details: { field: 'limits' },
    })
  },
)

test.each(['sprite', 'none'] as const)(
  'a network policy is refused by name where the isolation is "%s"',
  async (isolation) => {
    const refused = checkEnforced({ network: LISTED }, DEFAULT_SANDBOX_LIMITS, async () => isolation)
    expect(await rejectionOf(refused)).toMatchObject({ code: 'bad_request', details: { field: 'network' } })
  },
)

test('both are accepted where they are enforced', async () => {
  const settings = { network: LISTED, limits: OTHER_LIMITS }
  expect(await checkEnforced(settings, DEFAULT_SANDBOX_LIMITS, async () => 'bubblewrap')).toBeUndefined()
})
