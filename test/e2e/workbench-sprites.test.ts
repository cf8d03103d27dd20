import { describe, expect, test } from 'bun:test'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import { findBrowserProblem } from './support/browser.ts'
import { openSpritesServer } from './support/sprites-server.ts'
import { WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? findFakeSpritesProblem()

describe.skipIf(problem !== undefined)(
  `the workbench of a server with one sprite${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    test('opens a shell in the sprite, and finds it again after the sprite froze', async () => {
      await using sprites = await openSpritesServer()
      await using fixture = await WorkbenchFixture.start({ env: sprites.env })
      await using workbench = await fixture.openPage()
      expect(await workbench.first.read('pwd')).toBe('/home/sprite/workspace')
      sprites.api.sprite('dev').freeze()
      expect(await workbench.first.read('echo thawed')).toBe('thawed')
      expect(workbench.errors).toEqual([])
    })
  },
)
