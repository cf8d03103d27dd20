import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem()

describe.skipIf(problem !== undefined)(
  `tabs and panes of the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    const tabs = (workbench: WorkbenchPage) => workbench.page.getByRole('tab')

    async function expectTabs(workbench: WorkbenchPage, names: readonly string[]): Promise<void> {
      const read = () => tabs(workbench).allInnerTexts()
      await eventually(async () => (await read()).join() === names.join(), {
        what: 'the tabs',
      }).catch(() => undefined)
      expect(await read()).toEqual([...names])
    }

    async function rename(workbench: WorkbenchPage, at: number, name: string): Promise<void> {
      await tabs(workbench).nth(at).dblclick()
      await workbench.page.getByLabel('Tab name').fill(name)
      await workbench.page.keyboard.press('Enter')
    }

    test('open, are renamed, reordered, closed and restored after a reload', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run('here=one')
      await rename(workbench, 0, 'one')
      await workbench.page.getByRole('button', { name: 'New terminal', exact: true }).click()
      await workbench.first.ready()
      await workbench.first.run('here=two')
      await rename(workbench, 1, 'two')
      await workbench.page.keyboard.press('Control+Shift+Backquote')
      await expectTabs(workbench, ['one', 'two', 'dev'])
      await workbench.first.ready()
      await workbench.first.run('here=three')
      await rename(workbench, 2, 'x'.repeat(300))
      await expectTabs(workbench, ['one', 'two', 'x'.repeat(200)])
      await workbench.page.reload()
      await expectTabs(workbench, ['one', 'two', 'x'.repeat(200)])
      await rename(workbench, 2, 'three')
      await expectTabs(workbench, ['one', 'two', 'three'])
      await tabs(workbench).nth(2).dragTo(tabs(workbench).nth(0))
      await expectTabs(workbench, ['three', 'one', 'two'])
      await workbench.page.keyboard.press('Control+Shift+Backslash')
      await workbench.terminal(1).ready()
      await workbench.terminal(1).run('here=split')

      await workbench.page.reload()
      await expectTabs(workbench, ['three\n2', 'one', 'two'])
      expect(await workbench.first.read('echo $here')).toBe('three')
      expect(await workbench.terminal(1).read('echo $here')).toBe('split')
      await workbench.page.keyboard.press('Control+Shift+ArrowDown')
      expect(await workbench.first.read('echo $here')).toBe('one')
      const session = await workbench.first.session()
      await workbench.page.keyboard.press('Control+Shift+X')
      await expectTabs(workbench, ['three\n2', 'two'])
      await workbench.page.getByText('Still running.').waitFor()
      await workbench.button('End session').click()
      const list = async () => (await fixture.host.fetch('/api/account/sessions')).text()
      await eventually(async () => !(await list()).includes(session), { what: 'its end' })
      expect(workbench.errors).toEqual([])
    })

    test('are focused in turn by shortcuts', async () => {
      await using workbench = await fixture.openPage()
      await workbench.page.keyboard.press('Control+Shift+Backslash')
      await workbench.terminal(1).ready()
      await workbench.page.keyboard.press('Control+Shift+Minus')
      await workbench.terminal(2).ready()
      for (const [key, at] of [
        ['ArrowRight', 0],
        ['ArrowRight', 1],
        ['ArrowLeft', 0],
      ] as const) {
        await workbench.page.keyboard.press(`Control+Shift+${key}`)
        const word = `w${crypto.randomUUID().slice(0, 6)}`
        await workbench.page.keyboard.type(word)
        await workbench.terminal(at).waitFor(word)
      }
      await workbench.page.setViewportSize({ width: 800, height: 800 })
      await workbench.page.keyboard.press('Control+Shift+Backslash')
      await workbench.page.getByText('Pane too small to split.').waitFor()
      expect(await workbench.page.locator('[data-view]').count()).toBe(3)
      // On a phone the panel covers the panes and can be closed.
      await workbench.page.setViewportSize({ width: 390, height: 800 })
      await workbench.button('Close panel').click()
      await workbench.page.locator('.panel').waitFor({ state: 'detached' })
    })

    test('are renamed and moved by commands', async () => {
      await using workbench = await fixture.openPage()
      await rename(workbench, 0, 'one')
      await workbench.page.keyboard.press('Control+Shift+Backquote')
      await workbench.first.ready()
      await workbench.command('Rename tab')
      await workbench.page.getByLabel('Tab name').fill('two')
      await workbench.page.keyboard.press('Enter')
      await expectTabs(workbench, ['one', 'two'])
      await workbench.page.keyboard.type('x')
      // The Enter that confirms the name does not reach the shell.
      await workbench.first.waitFor(/^> x$/)
      await workbench.command('Move tab left')
      await expectTabs(workbench, ['two', 'one'])
    })

    test('have a font size, a search and a list of shortcuts', async () => {
      await using workbench = await fixture.openPage()
      const before = await workbench.first.until(() => true)
      for (let step = 0; step < 4; step += 1) await workbench.page.keyboard.press('Control+Shift+Period')
      await workbench.first.until(({ cols }) => cols < before.cols)
      await workbench.command('Reset font size')
      await workbench.first.until(({ cols }) => cols === before.cols)

      await workbench.first.run('seq 1 500; echo nee""dle; seq 501 900')
      await workbench.first.waitFor('\n900')
      await workbench.page.keyboard.press('Control+Shift+G')
      const find = workbench.page.getByLabel('Find in terminal')
      await find.last().fill('needle')
      const selected = () =>
        workbench.page.evaluate(() => {
          const [first] = (
            globalThis as unknown as { controllers: () => { surface: { selection: string } }[] }
          ).controllers()
          return first?.surface.selection
        })
      await eventually(async () => (await selected()) === 'needle', { what: 'the place' })
      await workbench.page.getByText('1 of 1').waitFor()
      await find.last().fill('89')
      await workbench.page.getByText('5 of 19').waitFor()
      await workbench.page.getByRole('button', { name: 'Previous' }).click()
      await workbench.page.getByText('4 of 19').waitFor()
      await workbench.page.getByRole('button', { name: 'Next' }).click()
      await workbench.page.getByText('5 of 19').waitFor()
      await find.last().press('Enter')
      await workbench.page.getByText('4 of 19').waitFor()
      await find.last().press('Shift+Enter')
      await workbench.page.getByText('5 of 19').waitFor()
      await find.last().fill('no such thing')
      await workbench.page.getByText('No results').waitFor()
      await workbench.page.keyboard.press('Escape')
      await workbench.page.keyboard.type('typed')
      await workbench.first.waitFor('> typed')

      await workbench.page.keyboard.press('Control+Shift+Slash')
      await workbench.page
        .getByRole('dialog', { name: 'Keyboard shortcuts' })
        .getByText('Split down')
        .waitFor()
      await workbench.page.keyboard.press('Escape')
      await workbench.page.keyboard.type(' again')
      await workbench.first.waitFor('> typed again')
    })

    test('report how a session ended, and start another shell', async () => {
      await using workbench = await fixture.openPage()
      const session = await workbench.first.session()
      await workbench.first.run('kill -9 $$')
      const ended = workbench.page.getByText('Process ended by SIGKILL')
      await ended.waitFor()
      expect((await workbench.first.facts())?.status).toBe('exited')
      await workbench.button('New shell').click()
      await workbench.first.until((facts) => facts.session !== undefined && facts.session !== session)
      await workbench.first.ready()
      expect(await workbench.first.read('echo new')).toBe('new')
      expect(await ended.isVisible()).toBe(false)
      await workbench.page.reload()
      await workbench.first.waitFor('new')
      expect(await workbench.first.read('echo later')).toBe('later')
    })

    test('report a session that ended while the page was closed', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run('mkfifo leave; echo wait"ing"; read < leave; exit 5')
      await workbench.first.waitFor('\nwaiting')
      const session = await workbench.first.session()
      const [sandbox = ''] = session.split('.')
      await workbench.page.goto('about:blank')
      const body = JSON.stringify({ cmd: 'sh', args: ['-c', 'echo > leave'] })
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
      expect((await fixture.host.fetch(`/api/sandboxes/${sandbox}/exec`, init)).status).toBe(200)
      const isRunning = async (): Promise<boolean> => {
        const { sessions } = (await (await fixture.host.fetch('/api/account/sessions')).json()) as {
          sessions: readonly { id: string; state: string }[]
        }
        return sessions.some(({ id, state }) => id === session && state === 'running')
      }
      await eventually(async () => !(await isRunning()), { what: 'the end' })
      await workbench.page.goto(fixture.origin)
      await workbench.page.locator('.banner.ended').waitFor()
      expect(await workbench.page.locator('.banner.ended').innerText()).toMatch(/exited with code 5|It ended/)
      await workbench.button('New shell').click()
      await workbench.first.ready()
    })
  },
)
