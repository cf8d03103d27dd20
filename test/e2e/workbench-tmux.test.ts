import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('tmux') === null ? 'no tmux' : undefined)
const WAIT = { timeoutMs: 40_000 }

describe.skipIf(problem !== undefined)(
  `tmux in the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    }, 120_000)

    async function openTmux(workbench: WorkbenchPage): Promise<void> {
      await workbench.command('Open tmux')
      await workbench.button('Start tmux').or(workbench.page.locator('.tmux-panes')).first().waitFor()
      if (await workbench.button('Start tmux').isVisible()) await workbench.button('Start tmux').click()
      await workbench.first.ready()
    }

    const paneCount = (workbench: WorkbenchPage): Promise<number> =>
      workbench.page.locator('.tmux-pane:visible').count()

    /** Types a command of tmux into a shell beside the view. */
    async function inside(workbench: WorkbenchPage, command: string): Promise<void> {
      const { sandboxes } = (await (await fixture.host.fetch('/api/sandboxes')).json()) as {
        readonly sandboxes: readonly { readonly id: string }[]
      }
      const response = await fixture.host.fetch(`/api/sandboxes/${sandboxes[0]?.id}/exec`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cmd: 'sh', args: ['-c', command] }),
      })
      expect(response.status).toBe(200)
      expect(workbench.errors).toEqual([])
    }

    test('shows panes as tmux has them, and both change the same windows', async () => {
      await using workbench = await fixture.openPage()
      await openTmux(workbench)
      // The window fills the view.
      const { cols, rows } = await workbench.first.until((facts) => facts.cols > 90)
      expect(await workbench.first.read('sleep 0.5; stty size')).toBe(`${rows} ${cols}`)

      await workbench.command('Split right')
      await eventually(async () => (await paneCount(workbench)) === 2, { what: 'two panes', ...WAIT })
      await workbench.terminal(1).ready()
      expect(await workbench.terminal(1).read('echo right')).toBe('right')
      await inside(workbench, 'tmux split-window -v -t %0')
      await eventually(async () => (await paneCount(workbench)) === 3, { what: 'a pane of tmux', ...WAIT })
      await inside(workbench, 'tmux send-keys -t %0 "echo typed-inside" Enter')
      await workbench.first.waitFor('\ntyped-inside')

      // A second page shows the same.
      await using other = await fixture.openPage()
      await other.command('Open tmux')
      await eventually(async () => (await paneCount(other)) === 3, { what: 'the panes elsewhere', ...WAIT })
      await other.first.waitFor('typed-inside')

      await workbench.page.reload()
      await eventually(async () => (await paneCount(workbench)) === 3, { what: 'the panes again', ...WAIT })
      await workbench.first.waitFor('typed-inside')

      await workbench.button('More actions').click()
      await workbench.page.getByRole('menuitem', { name: 'Rename pane' }).click()
      await workbench.page.getByLabel('Name of the pane').fill('server')
      await workbench.page.keyboard.press('Enter')
      await other.page.getByRole('group', { name: 'server' }).waitFor()

      await workbench.button('New window').click()
      await eventually(async () => (await paneCount(workbench)) === 1, { what: 'the new window', ...WAIT })
      await eventually(async () => (await paneCount(other)) === 1, { what: 'the new window there', ...WAIT })
      await workbench.page.getByRole('button', { name: /^0: / }).click()
      await eventually(async () => (await paneCount(workbench)) === 3, { what: 'the first window', ...WAIT })
      await workbench.button('Zoom pane').click()
      await eventually(async () => (await paneCount(workbench)) === 1, { what: 'the zoomed pane', ...WAIT })

      // Programs choose these names.
      await inside(workbench, `tmux rename-window -t :0 "$(printf 'a\\342\\200\\256b')"`)
      await workbench.page.getByRole('button', { name: /^0: (ab|a\u202eb)$/ }).waitFor()
      await inside(workbench, `tmux select-pane -t %0 -T "$(printf 'c\\342\\200\\256d')"`)
      await workbench.button('Zoom pane').click()
      await workbench.page.getByRole('group', { name: /^(cd|c\u202ed)$/ }).waitFor()
      const named = workbench.page.locator('.tmux-pane, .tmux-windows button')
      const names = await named.evaluateAll((all) =>
        all.map((each) => each.getAttribute('aria-label') ?? each.textContent),
      )
      expect(names).toContain('0: ab')
      expect(names).toContain('cd')

      await inside(workbench, 'tmux kill-server')
      await workbench.page.getByText('tmux is not running in this sandbox').waitFor()
      expect(workbench.errors).toEqual([])
    }, 120_000)
  },
)
