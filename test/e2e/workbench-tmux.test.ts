import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { workerdOf } from './support/deployment.ts'
import { openTerminal } from './support/terminal.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('tmux') === null ? 'no tmux' : undefined)
const CLI = new URL('../../apps/cli/src/main.ts', import.meta.url).pathname

describe.skipIf(problem !== undefined)(
  `tmux in the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    afterEach(async () => {
      // Also after a failed test, whose panes the next one would show.
      if ((await sandboxName()) !== '') await exec('tmux kill-server; true')
    })

    async function openTmux(workbench: WorkbenchPage): Promise<void> {
      await workbench.command('Open tmux')
      await workbench.button('Start tmux').or(workbench.page.locator('.tmux-panes')).first().waitFor()
      if (await workbench.button('Start tmux').isVisible()) await workbench.button('Start tmux').click()
      await workbench.first.ready()
    }

    const paneCount = (workbench: WorkbenchPage): Promise<number> =>
      workbench.page.locator('.tmux-pane:visible').count()

    async function sandboxName(): Promise<string> {
      const { sandboxes } = (await (await fixture.host.fetch('/api/sandboxes')).json()) as {
        readonly sandboxes: readonly { readonly name: string }[]
      }
      return sandboxes[0]?.name ?? ''
    }

    const exec = async (command: string): Promise<Response> =>
      fixture.host.fetch(`/api/sandboxes/${await sandboxName()}/exec`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cmd: 'sh', args: ['-c', command] }),
      })

    async function takeControl(workbench: WorkbenchPage): Promise<void> {
      await workbench.button('Take control here').click()
      // Keys are not sent before the page has control.
      await workbench.button('Take control here').waitFor({ state: 'hidden' })
    }

    /** Types a command of tmux into a shell beside the view. */
    async function inside(workbench: WorkbenchPage, command: string): Promise<void> {
      expect((await exec(command)).status).toBe(200)
      expect(workbench.errors).toEqual([])
    }

    test('shows panes as tmux has them, and both change the same windows', async () => {
      await using workbench = await fixture.openPage()
      await openTmux(workbench)
      // The window fills the view.
      const { cols, rows } = await workbench.first.until((facts) => facts.cols > 90)
      expect(await workbench.first.read('sleep 0.5; stty size')).toBe(`${rows} ${cols}`)

      await workbench.command('Split right')
      await eventually(async () => (await paneCount(workbench)) === 2, { what: 'two panes' })
      await workbench.terminal(1).ready()
      expect(await workbench.terminal(1).read('echo right')).toBe('right')
      await inside(workbench, 'tmux split-window -v -t %0')
      await eventually(async () => (await paneCount(workbench)) === 3, { what: 'a pane of tmux' })
      await inside(workbench, 'tmux send-keys -t %0 "echo typed-inside" Enter')
      await workbench.first.waitFor('\ntyped-inside')

      // A second page shows the same.
      await using other = await fixture.openPage()
      await other.command('Open tmux')
      await eventually(async () => (await paneCount(other)) === 3, { what: 'the panes elsewhere' })
      await other.first.waitFor('typed-inside')

      await workbench.page.reload()
      await eventually(async () => (await paneCount(workbench)) === 3, { what: 'the panes again' })
      await workbench.first.waitFor('typed-inside')

      await workbench.button('More actions').click()
      await workbench.page.getByRole('menuitem', { name: 'Rename pane' }).click()
      await workbench.page.getByLabel('Name of the pane').fill('server')
      await workbench.page.keyboard.press('Enter')
      await other.page.getByRole('group', { name: 'server' }).waitFor()

      await workbench.button('New window').click()
      await eventually(async () => (await paneCount(workbench)) === 1, { what: 'the new window' })
      await eventually(async () => (await paneCount(other)) === 1, { what: 'the new window there' })
      await workbench.page.getByRole('button', { name: /^0: / }).click()
      await eventually(async () => (await paneCount(workbench)) === 3, { what: 'the first window' })
      await workbench.button('Zoom pane').click()
      await eventually(async () => (await paneCount(workbench)) === 1, { what: 'the zoomed pane' })

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
      await inside(workbench, 'tmux new-session -d -n started-inside')
      await workbench.page.getByRole('button', { name: /started-inside/ }).waitFor()
      await inside(workbench, 'tmux kill-server')
      expect(workbench.errors).toEqual([])
    })

    test('two pages and a real tmux client show and change the same panes', async () => {
      await using workbench = await fixture.openPage()
      await using other = await fixture.openPage()
      await openTmux(workbench)
      await other.command('Open tmux')
      const client = openTerminal({
        argv: [process.execPath, CLI, 'tmux', await sandboxName(), '--url', fixture.host.url],
        env: { SBX_TOKEN: fixture.host.token, TMUX: undefined },
        cols: 100,
        rows: 30,
      })
      await client.waitFor('[main]')
      client.send('echo by-client-$((1+1))\r')
      for (const { first } of [workbench, other]) await first.waitFor('by-client-2')

      client.send('\u0002%')
      for (const page of [workbench, other])
        await eventually(async () => (await paneCount(page)) === 2, { what: 'the split' })
      // The page that opened the pane first has control.
      await workbench.terminal(1).focus()
      await workbench.page.locator('.participant-bar').waitFor()
      const { role } = await workbench.terminal(1).until(({ status }) => status === 'attached')
      if (role !== 'driver') await takeControl(workbench)
      await workbench.terminal(1).run('echo by-page-$((1+1))')
      await client.waitFor('by-page-2')
      await other.terminal(1).waitFor('by-page-2')

      // A page that has no control of a pane takes it.
      await other.terminal(1).focus()
      await takeControl(other)
      await other.terminal(1).run('echo by-other-$((1+1)); exit')
      await client.waitFor('by-other-2')
      for (const page of [workbench, other])
        await eventually(async () => (await paneCount(page)) === 1, { what: 'one pane' })
      client.send('\u0002d')
      expect(await client.exit).toMatchObject({ code: 0 })
      await inside(workbench, 'tmux kill-server')
      expect(other.errors).toEqual([])
    })

    test('a pane has an alternate screen, a mouse and bracketed paste, also after a reload', async () => {
      await using workbench = await fixture.openPage()
      await openTmux(workbench)
      const { first, page } = workbench
      await first.run('echo below-$((1+1))')
      await first.waitFor('below-2')
      const modes = String.raw`\033[?1049h\033[2J\033[H\033[?1000h\033[?1006h\033[?2004h`
      await first.run(`stty -icanon -echo; printf '${modes}A''LT\\n'; cat -v`)
      const check = async (row: number, pasted: string): Promise<void> => {
        expect(await first.waitFor('ALT')).not.toContain('below-2')
        const { drawn } = await first.until(
          (now) => now.drawn[0] === now.cols && now.drawn[1] === now.rows && now.status === 'attached',
        )
        const screen = first.element.locator('.xterm-screen')
        const { height = 0 } = (await screen.boundingBox()) ?? {}
        await screen.click({ position: { x: 3, y: ((row - 0.5) * height) / drawn[1] } })
        await first.waitFor(`^[[<0;1;${row}M`)
        await first.paste(`${pasted}\n${pasted}`)
        await page.getByRole('button', { name: 'Paste', exact: true }).click()
        await first.waitFor(new RegExp(String.raw`\^\[\[200~${pasted}\s+${pasted}\^\[\[201~`))
      }
      await check(3, 'one')
      await page.reload()
      await first.until(({ status }) => status === 'attached')
      await check(4, 'two')
      await first.type('\u0003')
      // Bash discards what was typed before it handles the interrupt.
      await first.waitFor(/\n> ?$/)
      await first.run(String.raw`printf '\033[?1000l\033[?1006l\033[?1049l'; stty sane`)
      expect(await first.waitFor('below-2')).not.toContain('ALT\n')
      await inside(workbench, 'tmux kill-server')
      expect(workbench.errors).toEqual([])
    })

    test('panes survive a restart of control', async () => {
      await using workbench = await fixture.openPage()
      await openTmux(workbench)
      await workbench.command('Split right')
      await eventually(async () => (await paneCount(workbench)) === 2, { what: 'two panes' })
      const panes = [workbench.terminal(0), workbench.terminal(1)]
      await workbench.terminal(1).ready()
      for (const pane of panes) await pane.run('echo before-$((1+1)); X=kept')
      for (const pane of panes) await pane.waitFor('before-2')
      const sessions = await Promise.all(panes.map((pane) => pane.session()))

      const killed = workerdOf(fixture.host)
      process.kill(killed ?? 0, 'SIGKILL')
      const isBack = (): boolean => ![killed, undefined].includes(workerdOf(fixture.host))
      await eventually(isBack, { what: 'another control' })
      for (const pane of panes) {
        expect(await pane.read('echo $X')).toBe('kept')
        expect(await pane.text()).toContain('before-2')
      }
      expect(await Promise.all(panes.map((pane) => pane.session()))).toEqual(sessions)
      await inside(workbench, 'tmux split-window -v -t %0')
      await eventually(async () => (await paneCount(workbench)) === 3, { what: 'a later split' })
      await inside(workbench, 'tmux kill-server')
    })
  },
)
