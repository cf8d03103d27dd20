import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem()

describe.skipIf(problem !== undefined)(
  `two windows of one browser${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    /** Opens another window of the same browser with the same terminal. */
    async function openWindow(workbench: WorkbenchPage): Promise<WorkbenchPage> {
      const other = new WorkbenchPage(fixture, workbench.context, await workbench.context.newPage())
      await other.page.goto(fixture.origin)
      await other.first.until(({ status }) => status === 'attached')
      return other
    }

    /** Names the selected tab. */
    async function rename({ page }: WorkbenchPage, name: string): Promise<void> {
      await page.getByRole('tab', { selected: true }).dblclick()
      await page.getByLabel('Tab name').fill(name)
      await page.keyboard.press('Enter')
    }

    /** Opens a named tab. */
    async function openTab(workbench: WorkbenchPage, name: string): Promise<void> {
      await workbench.page.bringToFront()
      await workbench.page.keyboard.press('Control+Shift+Backquote')
      await workbench.first.ready()
      await rename(workbench, name)
    }

    async function expectTabs({ page }: WorkbenchPage, names: readonly string[]): Promise<void> {
      const read = () => page.getByRole('tab').allInnerTexts()
      await eventually(async () => (await read()).join() === names.join(), {
        what: 'the tabs',
      }).catch(() => undefined)
      expect(await read()).toEqual([...names])
    }

    test('have their own tabs, restored by a reload and inherited by a new window', async () => {
      await using workbench = await fixture.openPage()
      const other = await openWindow(workbench)
      await openTab(workbench, 'of the first')
      await openTab(other, 'of the second')
      await workbench.page.reload()
      await expectTabs(workbench, ['dev', 'of the first'])
      await other.page.reload()
      await expectTabs(other, ['dev', 'of the second'])
      // A new window starts from the tabs that were changed last, in whichever window.
      await workbench.first.until(({ status }) => status === 'attached')
      await rename(other, 'changed last')
      const blank = await workbench.context.newPage()
      await other.page.close()
      await workbench.page.close()
      await blank.goto(fixture.origin)
      await expectTabs(new WorkbenchPage(fixture, workbench.context, blank), ['dev', 'changed last'])
    })

    /** True when the terminal has the focus. */
    const isInTerminal = ({ page }: WorkbenchPage): Promise<boolean> =>
      page.evaluate(() => document.activeElement?.classList.contains('xterm-helper-textarea') === true)

    test('keep the focus in the terminal after taking control', async () => {
      await using workbench = await fixture.openPage()
      const other = await openWindow(workbench)
      await other.button('Take control here').click()
      await other.first.until(({ role }) => role === 'driver')
      expect(await isInTerminal(other)).toBe(true)
      await other.page.keyboard.type('echo here')
      await other.first.waitFor('> echo here')
      await workbench.first.until(({ role }) => role === 'viewer')
    })

    test('take control by typing after the other was closed', async () => {
      await using workbench = await fixture.openPage()
      const other = await openWindow(workbench)
      await other.first.until(({ role }) => role === 'viewer')
      await other.page.bringToFront()
      await other.first.focus()
      // While the other window has control, nothing arrives.
      await other.page.keyboard.type('lost')
      await workbench.page.goto('about:blank')
      await other.page.getByText('Type to take control').waitFor()
      await other.page.keyboard.type('alone')
      await other.first.until(({ role }) => role === 'driver')
      await other.first.waitFor(/> alone$/)
    })
  },
)
