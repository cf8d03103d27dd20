import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import type { Page } from 'playwright-core'
import { findBrowserProblem } from './support/browser.ts'
import { WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)

function openPanel(page: Page, name: string): Promise<void> {
  return page.getByRole('navigation', { name: 'Panels' }).getByRole('button', { name, exact: true }).click()
}

describe.skipIf(problem !== undefined)(
  `panels of the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    test('keep their state for each sandbox', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.first.read('mkdir -p kept/deep; echo needle > kept/deep/hay.txt')
      const created = await fixture.host.fetch('/api/sandboxes', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'other' }),
      })
      expect(created.status).toBe(201)
      await openPanel(page, 'Files')
      await page.getByRole('treeitem', { name: 'kept' }).click()
      await page.getByRole('treeitem', { name: 'deep' }).click()
      const file = page.getByRole('treeitem', { name: 'hay.txt' })
      await file.waitFor()
      await openPanel(page, 'Search')
      const field = page.getByLabel('Search in files')
      await field.fill('needle')
      await page.getByRole('button', { name: 'Match case' }).click()
      const match = page.getByRole('region', { name: 'kept/deep/hay.txt' })
      await match.waitFor()

      await openPanel(page, 'Files')
      await file.waitFor()
      // Changes while the panel was hidden are shown.
      await workbench.first.read('touch kept/deep/late.txt')
      await openPanel(page, 'Search')
      await match.waitFor()
      expect(await field.inputValue()).toBe('needle')
      expect(await page.getByRole('button', { name: 'Match case' }).getAttribute('aria-pressed')).toBe('true')

      await openPanel(page, 'Sandboxes')
      await workbench.refreshLists()
      await page.getByRole('button', { name: 'New terminal in other' }).click()
      await workbench.first.ready()
      await openPanel(page, 'Search')
      await field.waitFor()
      expect(await field.inputValue()).toBe('')
      await page.getByRole('tab').first().click()
      await match.waitFor()
      await openPanel(page, 'Files')
      await file.waitFor()
      await page.getByRole('treeitem', { name: 'late.txt' }).waitFor()
      await fixture.host.fetch('/api/sandboxes/other', { method: 'DELETE' })
    })

    test('list the branches and which one is checked out', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.first.read(
        'git init -q -b main branched; cd branched; git config user.name A; git config user.email a@example.test; touch a; git add .; git commit -qm first; cd ..',
      )
      await openPanel(page, 'Git')
      const panel = page.getByRole('complementary', { name: 'Git' })
      await panel.getByText('main', { exact: true }).click()
      const rows = panel.getByRole('list', { name: 'Branches' }).getByRole('listitem')
      await rows.filter({ hasText: 'main' }).getByText('checked out').waitFor()
      await workbench.first.read('git -C branched checkout -q -b feature')
      await panel.getByRole('button', { name: 'feature' }).waitFor()
      await rows.filter({ hasText: 'feature' }).getByText('checked out').waitFor()
      expect(await rows.filter({ hasText: 'main' }).getByText('checked out').count()).toBe(0)
      // Branches are not interactive, and do not look so.
      expect(await rows.getByRole('button').count()).toBe(0)
      await rows.filter({ hasText: 'main' }).hover()
      expect(
        await rows.filter({ hasText: 'main' }).evaluate((row) => getComputedStyle(row).backgroundColor),
      ).toBe('rgba(0, 0, 0, 0)')

      // Expanded sections are restored.
      await openPanel(page, 'Files')
      await page.getByRole('tree').waitFor()
      await openPanel(page, 'Git')
      await rows.filter({ hasText: 'feature' }).getByText('checked out').waitFor()
      await workbench.first.read('rm -rf branched')
    })

    test('render a huge folder in parts, all reachable by keyboard', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.first.read(
        'mkdir big; (cd big; seq -f "f%05g" 1 12000 | xargs touch; touch zebra); touch zz-root.txt',
      )
      await openPanel(page, 'Files')
      const items = page.getByRole('treeitem')
      const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.textContent ?? '')
      const comesTo = (name: string): Promise<unknown> =>
        eventually(async () => (await focused()) === name, { what: `the keyboard at ${name}` })
      const type = async (text: string): Promise<void> => {
        // Another key ends what was typed before.
        await page.keyboard.press('Home')
        await page.keyboard.type(text)
      }
      await page.getByRole('treeitem', { name: 'big' }).focus()
      await page.keyboard.press('ArrowRight')
      const first = page.getByRole('treeitem', { name: 'f00001' })
      await first.waitFor()
      expect(await items.count()).toBeLessThan(200)
      await page.keyboard.press('ArrowDown')
      await comesTo('f00001')
      expect(await first.getAttribute('aria-level')).toBe('2')
      expect(await first.getAttribute('aria-posinset')).toBe('1')
      for (let at = 0; at < 100; at += 1) await page.keyboard.press('ArrowDown')
      await comesTo('f00101')
      // The last entry of the root comes after the folder.
      await page.keyboard.press('End')
      await comesTo('zz-root.txt')
      await page.keyboard.press('Home')
      await eventually(async () => (await focused()) !== 'zz-root.txt', { what: 'the first line' })
      await type('b')
      await comesTo('big')
      await type('f00777')
      await comesTo('f00777')
      // Beyond the first page.
      await type('f1')
      await comesTo('f10000')
      await eventually(
        async () => {
          await page.keyboard.press('PageDown')
          return (await focused()) >= 'f10050'
        },
        { what: 'the next part of the folder' },
      )
      // On a busy machine the letters may arrive too far apart to count as one word.
      await eventually(
        async () => {
          await type('ze')
          return (await focused()) === 'zebra'
        },
        { what: 'the keyboard at zebra' },
      )
      expect(
        await page.getByRole('treeitem', { name: 'zebra' }).evaluate((row) => {
          const box = row.getBoundingClientRect()
          return row.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2))
        }),
      ).toBe(true)
      expect(await page.getByRole('treeitem', { name: 'zebra' }).getAttribute('aria-setsize')).toBe('12001')
      expect(await items.count()).toBeLessThan(200)

      // The scroll position is restored.
      await openPanel(page, 'Search')
      await page.getByLabel('Search in files').waitFor()
      await openPanel(page, 'Files')
      await page.getByRole('treeitem', { name: 'zebra' }).waitFor()
      await page.keyboard.press('Tab')
      await workbench.first.read('rm -rf big zz-root.txt')
      await page.getByRole('treeitem', { name: 'big' }).waitFor({ state: 'detached' })
      expect(workbench.errors).toEqual([])
    })
  },
)
