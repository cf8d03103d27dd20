import { beforeAll, describe, expect, test } from 'bun:test'
import { findBrowserProblem } from './support/browser.ts'
import { WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)

describe.skipIf(problem !== undefined)(
  `a page whose version is no longer served${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    test('keeps its terminals when a part cannot be loaded, and recovers by a reload', async () => {
      const fixture = await WorkbenchFixture.open()
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.first.run('echo text > some.txt; echo writ"ten"')
      await workbench.first.waitFor('written')
      const session = await workbench.first.session()
      await page.route('**/assets/*.js', (route) => route.fulfill({ status: 404, body: '' }))
      await page.getByRole('button', { name: 'Files', exact: true }).click()
      await page.getByText('Cannot load this part of the page').waitFor()
      expect(await workbench.first.read('echo still he"re"')).toContain('still here')
      await page.unroute('**/assets/*.js')
      await page.getByRole('button', { name: 'Reload page' }).click()
      await workbench.first.until(({ status }) => status === 'attached')
      expect(await workbench.first.session()).toBe(session)
      await page.getByRole('treeitem', { name: 'some.txt' }).waitFor()
    })
  },
)

describe.skipIf(problem !== undefined)(
  `a part of the page opened without a connection${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    test('is reported, and loads on retry', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      // Including shared chunks, whose failed imports a browser caches as well.
      await page.route('**/assets/*.js', (route) => route.abort('connectionrefused'))
      await workbench.button('Files').click()
      const alert = page.getByRole('alert')
      await alert.getByText('Cannot load this part of the page: server unreachable').waitFor()
      await workbench.button('Try again').click()
      await alert.getByText('server unreachable').waitFor()
      await page.unroute('**/assets/*.js')
      await workbench.button('Try again').click()
      await page.getByRole('tree').waitFor()

      // Another server may no longer have this version.
      await page.route('**/assets/*.js', (route) => route.fulfill({ status: 404, body: '' }))
      await page.getByRole('navigation').getByRole('button', { name: 'Git' }).click()
      await alert.getByText('There may be a new version').waitFor()
      await page.unroute('**/assets/*.js')
      await workbench.button('Try again').click()
      await page.getByText(/No Git repository|No changes/).waitFor()
    })

    test('loads by itself when the browser is online again', async () => {
      await using workbench = await fixture.openPage()
      const { page, context } = workbench
      await context.setOffline(true)
      await workbench.button('Search').click()
      await page.getByText('server unreachable').waitFor()
      await context.setOffline(false)
      await page.getByLabel('Search in files').waitFor()
    })
  },
)
