import { expect, test } from 'bun:test'
import { Deployment } from './support/deployment.ts'
import { canBecomeNobody } from './support/nobody.ts'
import { findLeaks } from './support/sandbox-leaks.ts'

/** `npm run soak` runs 200. */
const SANDBOXES = 5

test.each(canBecomeNobody ? [false, true] : [false])(
  `${SANDBOXES} sandboxes through the API leave nothing behind (unprivileged host: %p) (threat T40)`,
  async (isNobody) => {
    await using deployment = await Deployment.open({ isNobody })
    expect(await findLeaks(deployment, SANDBOXES)).toEqual([])
    await deployment.clear()
    await deployment.waitUntilGone()
  },
)
