import { describe, expect, test } from 'bun:test'
import { findBrowserObstacle } from './support/browser.ts'
import { WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserObstacle() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)

describe.skipIf(obstacle !== undefined)(
  `a page of a version that is no longer served${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    test('keeps its terminals when another part of it is gone, and has it after a reload', async () => {
      await using scene = await WorkbenchScene.open()
      await using desk = await scene.openDesk()
      const { page } = desk
      await desk.first.run('echo text > some.txt; echo writ"ten"')
      await desk.first.waitFor('written')
      const session = await desk.first.session()
      await page.route('**/assets/*.js', (route) => route.fulfill({ status: 404, body: '' }))
      await page.getByRole('button', { name: 'Files', exact: true }).click()
      await page.getByText('This part of the page could not be loaded').waitFor()
      expect(await desk.first.read('echo still he"re"')).toContain('still here')
      await page.unroute('**/assets/*.js')
      await page.getByRole('button', { name: 'Reload the page' }).click()
      await desk.first.until(({ status }) => status === 'attached')
      expect(await desk.first.session()).toBe(session)
      await page.getByRole('treeitem', { name: 'some.txt' }).waitFor()
    }, 120_000)
  },
)
