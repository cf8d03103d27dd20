import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { type Desk, WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserProblem()
const WAIT = { timeoutMs: 40_000 }

describe.skipIf(obstacle !== undefined)(
  `tabs and panes of the workbench${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let scene: WorkbenchScene
    beforeAll(async () => {
      scene = await WorkbenchScene.open()
    }, 120_000)

    const tabs = (desk: Desk) => desk.page.getByRole('tab')

    async function expectTabs(desk: Desk, names: readonly string[]): Promise<void> {
      const read = () => tabs(desk).allInnerTexts()
      await eventually(async () => (await read()).join() === names.join(), {
        what: 'the tabs',
        ...WAIT,
      }).catch(() => undefined)
      expect(await read()).toEqual([...names])
    }

    async function rename(desk: Desk, at: number, name: string): Promise<void> {
      await tabs(desk).nth(at).dblclick()
      await desk.page.getByLabel('Tab name').fill(name)
      await desk.page.keyboard.press('Enter')
    }

    test('open, are renamed and put in another order, close, and come back after a reload', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run('here=one')
      await rename(desk, 0, 'one')
      await desk.page.getByRole('button', { name: 'New terminal', exact: true }).click()
      await desk.first.ready()
      await desk.first.run('here=two')
      await rename(desk, 1, 'two')
      await desk.page.keyboard.press('Control+Shift+Backquote')
      await expectTabs(desk, ['one', 'two', 'dev'])
      await desk.first.ready()
      await desk.first.run('here=three')
      await rename(desk, 2, 'x'.repeat(300))
      await expectTabs(desk, ['one', 'two', 'x'.repeat(200)])
      await desk.page.reload()
      await expectTabs(desk, ['one', 'two', 'x'.repeat(200)])
      await rename(desk, 2, 'three')
      await expectTabs(desk, ['one', 'two', 'three'])
      await tabs(desk).nth(2).dragTo(tabs(desk).nth(0))
      await expectTabs(desk, ['three', 'one', 'two'])
      await desk.page.keyboard.press('Control+Shift+Backslash')
      await desk.terminal(1).ready()
      await desk.terminal(1).run('here=split')

      await desk.page.reload()
      await expectTabs(desk, ['three\n2', 'one', 'two'])
      expect(await desk.first.read('echo $here')).toBe('three')
      expect(await desk.terminal(1).read('echo $here')).toBe('split')
      await desk.page.keyboard.press('Control+Shift+ArrowDown')
      expect(await desk.first.read('echo $here')).toBe('one')
      const session = await desk.first.session()
      await desk.page.keyboard.press('Control+Shift+X')
      await expectTabs(desk, ['three\n2', 'two'])
      await desk.page.getByText('Still running.').waitFor()
      await desk.button('End session').click()
      const list = async () => (await scene.host.fetch('/api/account/sessions')).text()
      await eventually(async () => !(await list()).includes(session), { what: 'its end', ...WAIT })
      expect(desk.errors).toEqual([])
    }, 90_000)

    test('of splits take turns with the keyboard', async () => {
      await using desk = await scene.openDesk()
      await desk.page.keyboard.press('Control+Shift+Backslash')
      await desk.terminal(1).ready()
      await desk.page.keyboard.press('Control+Shift+Minus')
      await desk.terminal(2).ready()
      for (const [key, at] of [
        ['ArrowRight', 0],
        ['ArrowRight', 1],
        ['ArrowLeft', 0],
      ] as const) {
        await desk.page.keyboard.press(`Control+Shift+${key}`)
        const word = `w${crypto.randomUUID().slice(0, 6)}`
        await desk.page.keyboard.type(word)
        await desk.terminal(at).waitFor(word)
      }
      await desk.page.setViewportSize({ width: 800, height: 800 })
      await desk.page.keyboard.press('Control+Shift+Backslash')
      await desk.page.getByText('Pane too small to split.').waitFor()
      expect(await desk.page.locator('[data-view]').count()).toBe(3)
      // On a phone a panel lies over them, and can be closed.
      await desk.page.setViewportSize({ width: 390, height: 800 })
      await desk.button('Close panel').click()
      await desk.page.locator('.panel').waitFor({ state: 'detached' })
    }, 60_000)

    test('are moved by keys alone', async () => {
      await using desk = await scene.openDesk()
      await rename(desk, 0, 'one')
      await desk.page.keyboard.press('Control+Shift+Backquote')
      await desk.first.ready()
      await desk.command('Rename tab')
      await desk.page.getByLabel('Tab name').fill('two')
      await desk.page.keyboard.press('Enter')
      await expectTabs(desk, ['one', 'two'])
      await desk.page.keyboard.type('x')
      // The Enter of the name is not one for the shell.
      await desk.first.waitFor(/^> x$/)
      await desk.command('Move tab left')
      await expectTabs(desk, ['two', 'one'])
    }, 60_000)

    test('have a text size, a search and a sheet of keys', async () => {
      await using desk = await scene.openDesk()
      const before = await desk.first.until(() => true)
      for (let step = 0; step < 4; step += 1) await desk.page.keyboard.press('Control+Shift+Period')
      await desk.first.until(({ cols }) => cols < before.cols)
      await desk.command('Reset font size')
      await desk.first.until(({ cols }) => cols === before.cols)

      await desk.first.run('seq 1 500; echo nee""dle; seq 501 900')
      await desk.first.waitFor('\n900')
      await desk.page.keyboard.press('Control+Shift+G')
      const find = desk.page.getByLabel('Find in terminal')
      await find.last().fill('needle')
      const selected = () =>
        desk.page.evaluate(() => {
          const [first] = (
            globalThis as unknown as { controllers: () => { surface: { selection: string } }[] }
          ).controllers()
          return first?.surface.selection
        })
      await eventually(async () => (await selected()) === 'needle', { what: 'the place', ...WAIT })
      await desk.page.getByText('1 of 1').waitFor()
      await find.last().fill('89')
      await desk.page.getByText('5 of 19').waitFor()
      await desk.page.getByRole('button', { name: 'Previous' }).click()
      await desk.page.getByText('4 of 19').waitFor()
      await desk.page.getByRole('button', { name: 'Next' }).click()
      await desk.page.getByText('5 of 19').waitFor()
      await find.last().press('Enter')
      await desk.page.getByText('4 of 19').waitFor()
      await find.last().press('Shift+Enter')
      await desk.page.getByText('5 of 19').waitFor()
      await find.last().fill('no such thing')
      await desk.page.getByText('No results').waitFor()
      await desk.page.keyboard.press('Escape')
      await desk.page.keyboard.type('typed')
      await desk.first.waitFor('> typed')

      await desk.page.keyboard.press('Control+Shift+Slash')
      await desk.page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Split down').waitFor()
      await desk.page.keyboard.press('Escape')
      await desk.page.keyboard.type(' again')
      await desk.first.waitFor('> typed again')
    }, 60_000)

    test.each([
      ['exit 7', 'Process exited with code 7'],
      ['exit 0', 'Process exited with code 0'],
      ['kill -9 $$', 'Process ended by SIGKILL'],
    ])(
      'whose session ended with %s say so and start another shell',
      async (command, words) => {
        await using desk = await scene.openDesk()
        const session = await desk.first.session()
        await desk.first.run(command)
        await desk.page.getByText(words).waitFor()
        expect((await desk.first.facts())?.status).toBe('exited')
        await desk.button('New shell').click()
        await desk.first.until((facts) => facts.session !== undefined && facts.session !== session)
        await desk.first.ready()
        expect(await desk.first.read('echo new')).toBe('new')
        expect(await desk.page.getByText(words).isVisible()).toBe(false)
        await desk.page.reload()
        await desk.first.waitFor('new')
        expect(await desk.first.read('echo later')).toBe('later')
      },
      60_000,
    )

    test('whose session ended while the page was away say so after a reload', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run('sleep 1; exit 5')
      await desk.page.goto('about:blank')
      const session = async (): Promise<number> => {
        const { sessions } = (await (await scene.host.fetch('/api/account/sessions')).json()) as {
          sessions: readonly { state: string }[]
        }
        return sessions.filter(({ state }) => state === 'running').length
      }
      const running = await session()
      await eventually(async () => (await session()) < running, { what: 'the end', ...WAIT })
      await desk.page.goto(scene.origin)
      await desk.page.locator('.banner.ended').waitFor()
      expect(await desk.page.locator('.banner.ended').innerText()).toMatch(/exited with code 5|It ended/)
      await desk.button('New shell').click()
      await desk.first.ready()
    }, 60_000)
  },
)
