import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { Desk, WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserProblem()
const WAIT = { timeoutMs: 40_000 }

describe.skipIf(obstacle !== undefined)(
  `two windows of one browser${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let scene: WorkbenchScene
    beforeAll(async () => {
      scene = await WorkbenchScene.open()
    }, 120_000)

    /** Another window of the same browser, which shows the first one's terminal as well. */
    async function openWindow(desk: Desk): Promise<Desk> {
      const other = new Desk(scene, desk.context, await desk.context.newPage())
      await other.page.goto(scene.origin)
      await other.first.until(({ status }) => status === 'attached')
      return other
    }

    /** Opens a tab under a name. */
    async function openTab({ page, first }: Desk, name: string): Promise<void> {
      await page.bringToFront()
      await page.keyboard.press('Control+Shift+Backquote')
      await first.ready()
      await page.getByRole('tab', { selected: true }).dblclick()
      await page.getByLabel('Tab name').fill(name)
      await page.keyboard.press('Enter')
    }

    async function expectTabs({ page }: Desk, names: readonly string[]): Promise<void> {
      const read = () => page.getByRole('tab').allInnerTexts()
      await eventually(async () => (await read()).join() === names.join(), {
        what: 'the tabs',
        ...WAIT,
      }).catch(() => undefined)
      expect(await read()).toEqual([...names])
    }

    test('have tabs of their own, which come back after a reload, and a later window has some to begin with', async () => {
      await using desk = await scene.openDesk()
      const other = await openWindow(desk)
      await openTab(desk, 'of the first')
      await openTab(other, 'of the second')
      await desk.page.reload()
      await expectTabs(desk, ['dev', 'of the first'])
      await other.page.reload()
      await expectTabs(other, ['dev', 'of the second'])
      const blank = await desk.context.newPage()
      await other.page.close()
      await desk.page.close()
      await blank.goto(scene.origin)
      await expectTabs(new Desk(scene, desk.context, blank), ['dev', 'of the second'])
    }, 90_000)

    /** Whether keys reach the terminal. */
    const isInTerminal = ({ page }: Desk): Promise<boolean> =>
      page.evaluate(() => document.activeElement?.classList.contains('xterm-helper-textarea') === true)

    test('leave the keyboard in the terminal that is driven from one of them', async () => {
      await using desk = await scene.openDesk()
      const other = await openWindow(desk)
      await other.button('Take control here').click()
      await other.first.until(({ role }) => role === 'driver')
      expect(await isInTerminal(other)).toBe(true)
      await other.page.keyboard.type('echo here')
      await other.first.waitFor('> echo here')
      await desk.first.until(({ role }) => role === 'viewer')
    }, 60_000)

    test('take over from the one that was closed as soon as somebody types', async () => {
      await using desk = await scene.openDesk()
      const other = await openWindow(desk)
      await other.first.until(({ role }) => role === 'viewer')
      await other.page.bringToFront()
      await other.first.focus()
      // As long as somebody drives, nothing of it arrives.
      await other.page.keyboard.type('lost')
      await desk.page.goto('about:blank')
      await other.page.getByText('Type to take control').waitFor()
      await other.page.keyboard.type('alone')
      await other.first.until(({ role }) => role === 'driver')
      await other.first.waitFor(/> alone$/)
    }, 60_000)
  },
)
