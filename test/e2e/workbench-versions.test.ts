import { beforeAll, describe, expect, test } from 'bun:test'
import type { AxeResults } from 'axe-core'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { findBrowserProblem } from './support/browser.ts'
import { WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)
/** Folder for screenshots, for a person who looks at them. */
const SHOTS = process.env['SANDWIRE_SCREENSHOTS']

declare const window: { readonly axe: { run(): Promise<AxeResults> } }

async function findViolations(page: Page): Promise<readonly string[]> {
  const { violations } = await page.evaluate(() => window.axe.run())
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`))
}

async function shoot(page: Page, name: string): Promise<void> {
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}.png` })
}

describe.skipIf(problem !== undefined)(
  `versions in the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    test('are listed, created, browsed, compared, restored, undone and forked', async () => {
      await using workbench = await fixture.openPage({ acceptDownloads: true })
      const { page, first } = workbench
      await workbench.context.addInitScript({ content: axe.source })
      await page.reload()
      await first.waitFor('>')
      await first.read('mkdir -p src; echo one > src/notes.md; echo rc > ~/.rc')
      const status = page.getByRole('contentinfo').getByRole('button', { name: /^Saved / })
      await status.waitFor()

      // By keyboard alone: the panel, the form, the menu.
      await status.focus()
      await page.keyboard.press('Enter')
      const panel = page.getByRole('complementary', { name: 'Versions' })
      await panel.getByRole('button', { name: 'New checkpoint' }).focus()
      await page.keyboard.press('Enter')
      await page.keyboard.type('Wrong name')
      await page.keyboard.press('Enter')
      await page.getByRole('alert').getByText('Use lower-case letters').waitFor()
      await page.getByRole('textbox', { name: 'Name' }).fill('first')
      await page.keyboard.press('Enter')
      const row = (name: string) => panel.getByRole('listitem').filter({ hasText: name })
      await row('first').waitFor()
      expect(await row('first').textContent()).toMatch(/first.* · \+.* bytes · checkpoint/)
      await shoot(page, 'versions')

      await first.read('echo two > src/notes.md; echo extra > src/extra.md')
      await panel.getByRole('button', { name: 'New checkpoint' }).click()
      await page.getByRole('textbox', { name: 'Name' }).fill('second')
      await page.keyboard.press('Enter')
      await row('second').waitFor()
      const violations: string[] = [...(await findViolations(page))]

      const act = async (name: string, item: string): Promise<void> => {
        await row(name)
          .getByRole('button', { name: `Actions for ${name}` })
          .focus()
        await page.keyboard.press('Enter')
        const entry = page.getByRole('menuitem', { name: item })
        for (
          let steps = 0;
          steps < 6 && !(await entry.evaluate((each) => each === document.activeElement));
          steps++
        )
          await page.keyboard.press('ArrowDown')
        await page.keyboard.press('Enter')
      }
      await act('first', 'Compare')
      const changes = page.getByRole('list', { name: 'Changes' })
      await changes.getByText('workspace/src/extra.md').waitFor()
      expect(await changes.textContent()).toContain('workspace/src/notes.mdmodified')
      violations.push(...(await findViolations(page)))
      await shoot(page, 'compare')
      await page.keyboard.press('Escape')

      await act('first', 'Browse files')
      const files = page.getByRole('dialog', { name: 'Files of first' })
      await files.getByRole('button', { name: 'src' }).click()
      const download = page.waitForEvent('download')
      await files.getByRole('link', { name: 'Download notes.md' }).click()
      const saved = await (await download).path()
      expect(await Bun.file(saved).text()).toBe('one\n')
      violations.push(...(await findViolations(page)))
      await shoot(page, 'browse')
      await page.keyboard.press('Escape')

      await act('first', 'Restore')
      await page.getByRole('dialog', { name: 'Restore first?' }).waitFor()
      violations.push(...(await findViolations(page)))
      await page.getByRole('button', { name: 'Restore', exact: true }).click()
      await page.getByText('Restored first').waitFor()
      const read = async (): Promise<unknown> =>
        (
          await fixture.host.fetch('/api/sandboxes/dev/exec', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ cmd: 'sh', args: ['-c', 'cat src/*'] }),
          })
        ).json()
      expect(await read()).toMatchObject({ output: 'one\n' })
      await page.getByRole('button', { name: 'Undo' }).click()
      await page.getByText('Restore undone').waitFor()
      expect(await read()).toMatchObject({ output: 'extra\ntwo\n' })

      await act('first', 'Fork to a new sandbox')
      await page.getByRole('textbox', { name: 'Name of the new sandbox' }).fill('forked')
      await page.keyboard.press('Enter')
      await panel.getByRole('heading', { name: 'Versions of forked' }).waitFor()
      expect(violations).toEqual([])
    }, 180_000)

    test('can be used on a phone', async () => {
      await using workbench = await fixture.openPage({
        viewport: { width: 390, height: 844 },
        hasTouch: true,
        isMobile: true,
      })
      const { page } = workbench
      await page.getByRole('navigation', { name: 'Panels' }).getByRole('button', { name: 'Versions' }).tap()
      const panel = page.getByRole('complementary', { name: 'Versions' })
      const actions = panel.getByRole('button', { name: /^Actions for / }).first()
      await actions.waitFor()
      await shoot(page, 'phone-versions')
      await actions.tap()
      await shoot(page, 'phone-menu')
      await page.getByRole('menuitem', { name: 'Browse files' }).tap()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('navigation', { name: 'Path' }).waitFor()
      await shoot(page, 'phone-browse')
      const box = await dialog.boundingBox()
      expect(box?.x).toBeGreaterThanOrEqual(0)
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(390)
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      expect(width).toBeLessThanOrEqual(390)
    })
  },
)
