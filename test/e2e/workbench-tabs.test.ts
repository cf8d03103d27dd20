import { beforeAll, describe, expect, test } from 'bun:test'
import { findBrowserProblem } from './support/browser.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem()
/** How long a shell is kept for a closed page. */
const KEEP_SECONDS = '43200'
/** Minimum size of a touch target. */
const MIN_TARGET = 24

describe.skipIf(problem !== undefined)(
  `the tabs of the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    async function openFile({ page }: WorkbenchPage, path: string): Promise<void> {
      await page.keyboard.press('Control+Shift+O')
      await page.getByRole('combobox').fill(path)
      await page.getByRole('option').first().waitFor()
      await page.keyboard.press('Enter')
      await page.locator('.file-path:visible').getByText(path, { exact: true }).waitFor()
    }

    test('of one name are distinguishable and have full tooltips', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.read('mkdir -p deep/a/b/c; echo 1 > v.txt; echo 2 > deep/a/b/c/v.txt')
      await workbench.page.keyboard.press('Control+Shift+Backquote')
      await workbench.first.ready()
      await openFile(workbench, 'deep/a/b/c/v.txt')
      await openFile(workbench, 'v.txt')
      const tabs = workbench.page.getByRole('tab')
      const words = (await tabs.allInnerTexts()).map((text) => text.split(/\s+/).join(' '))
      expect(words).toEqual(['dev', 'dev 2', 'v.txt …/c', 'v.txt'])
      const hints = await tabs.evaluateAll((all) => all.map((one) => one.getAttribute('title')))
      expect(hints).toEqual([
        'dev — terminal in dev',
        'dev 2 — terminal in dev',
        'deep/a/b/c/v.txt — dev',
        'v.txt — dev',
      ])
    })

    test('have a large enough close button', async () => {
      await using workbench = await fixture.openPage()
      const box = await workbench.button('Close dev').boundingBox()
      expect(box?.width).toBeGreaterThanOrEqual(MIN_TARGET)
      expect(box?.height).toBeGreaterThanOrEqual(MIN_TARGET)
      expect((await workbench.page.locator('.tab-bar').boundingBox())?.height).toBe(36)
    })

    test('restart a shell that is kept as long as the first', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      const kept: (string | null)[] = []
      page.on('websocket', (socket) => {
        const { searchParams } = new URL(socket.url())
        if (searchParams.has('createId')) kept.push(searchParams.get('keep'))
      })
      await workbench.first.run('exit')
      await page.locator('.banner.ended').waitFor()
      await page.keyboard.press('Control+Shift+Backquote')
      await workbench.first.ready()
      await page.keyboard.press('Control+Shift+X')
      const notice = page.getByText('Still running.')
      await notice.waitFor()
      const ended = page.locator('.banner.ended')
      for (const name of ['Close', 'New shell'])
        await ended.getByRole('button', { name, exact: true }).click({ trial: true, timeout: 3_000 })
      expect(await notice.isVisible()).toBe(true)
      await workbench.button('New shell').click()
      await workbench.first.ready()
      expect(kept).toEqual([KEEP_SECONDS, KEEP_SECONDS])
    })
  },
)
