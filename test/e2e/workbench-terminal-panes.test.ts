import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserObstacle } from './support/browser.ts'
import { type Desk, type DeskOptions, WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserObstacle()
const WAIT = { timeoutMs: 20_000 }

describe.skipIf(obstacle !== undefined)(
  `the panes of terminals${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let scene: WorkbenchScene
    beforeAll(async () => {
      scene = await WorkbenchScene.open()
    }, 120_000)
    afterAll(() => scene[Symbol.asyncDispose]())

    /** A link to the terminal in front, made in the dialog. */
    async function share(owner: Desk, choice: 'Watch' | 'Type as well'): Promise<string> {
      await owner.button('Share this terminal').click()
      await owner.page.getByRole('radio', { name: choice }).check()
      await owner.button('Make a link').click()
      const link = await owner.page.getByLabel('The link works once').inputValue()
      await owner.page.getByRole('button', { name: 'Close', exact: true }).click()
      return link
    }

    async function join(link: string, name: string, options: DeskOptions = {}): Promise<Desk> {
      const guest = await scene.openStranger(options)
      await guest.page.goto(link)
      await guest.page.getByLabel('Your name').fill(name)
      await guest.button('Join').click()
      await guest.page.getByText('shares one session with you').waitFor()
      await guest.page.locator('#open').click()
      await guest.first.until(({ status }) => status === 'attached')
      return guest
    }

    test('keep their size while they are in a tab behind', async () => {
      await using desk = await scene.openDesk()
      const { rows, cols } = await desk.first.until(() => true)
      await desk.first.run('rm -f now; mkfifo now; (read < now; stty size)')
      await desk.page.keyboard.press('Control+Shift+Backquote')
      await desk.first.ready()
      await desk.first.run('echo > now')
      await desk.first.waitFor(/> $|>$/)
      await desk.page.keyboard.press('Control+Shift+ArrowUp')
      expect(await desk.first.waitFor(/^\d+ \d+$/m)).toContain(`\n${rows} ${cols}`)

      // Also after a reload, when they never were in front.
      await desk.first.run('clear; (read < now; stty size)')
      await desk.page.keyboard.press('Control+Shift+ArrowDown')
      await desk.page.reload()
      expect(await desk.first.read('echo > now; sleep 0.1; echo done')).toBe('done')
      await desk.page.keyboard.press('Control+Shift+ArrowUp')
      expect(await desk.first.waitFor(/^\d+ \d+$/m)).toContain(`${rows} ${cols}`)
    }, 90_000)

    test('are shown whole to who joins late with a smaller window', async () => {
      await using owner = await scene.openDesk({ viewport: { width: 1280, height: 800 } })
      await using _ = await join(await share(owner, 'Watch'), 'Ann')
      const { drawn } = await owner.first.until(() => true)
      const viewport = { width: 1000, height: 640 }
      await using late = await join(await share(owner, 'Watch'), 'Late', { viewport })
      await late.first.until((facts) => `${facts.cols},${facts.rows}` === drawn.join())
      expect(await late.page.locator('.status-bar').innerText()).toContain(drawn.join('×'))
      const isWhole = (): Promise<boolean> =>
        late.first.element.evaluate((place) => {
          const screen = place.querySelector('.xterm-screen')?.getBoundingClientRect()
          const { right, bottom } = place.getBoundingClientRect()
          return screen !== undefined && screen.right <= right && screen.bottom <= bottom
        })
      await eventually(isWhole, { what: 'all of it to be in sight', ...WAIT })
    }, 90_000)
  },
)
