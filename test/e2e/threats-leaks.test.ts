import { expect, test } from 'bun:test'
import { FrontDoor } from './support/front-door.ts'
import { canBecomeNobody } from './support/nobody.ts'
import { findLeaks } from './support/sandbox-lives.ts'

/** `npm run soak` does 200. */
const SANDBOXES = 8

test.each(canBecomeNobody ? [false, true] : [false])(
  `${SANDBOXES} sandboxes through the API leave nothing (unprivileged host: %p) (threat T40)`,
  async (isNobody) => {
    await using door = await FrontDoor.open({ isNobody })
    expect(await findLeaks(door, SANDBOXES)).toEqual([])
    await door.clear()
    await door.isGone()
  },
)
