import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { type WorkbenchPage, type WorkbenchPageOptions, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem()

describe.skipIf(problem !== undefined)(
  `the panes of terminals${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    /** Creates a share link for the active terminal in the dialog. */
    async function share(owner: WorkbenchPage, choice: 'View only' | 'Can type'): Promise<string> {
      await owner.button('Share terminal').click()
      await owner.page.getByRole('radio', { name: choice }).check()
      await owner.button('Create link').click()
      const link = await owner.page.getByLabel('The link works once').inputValue()
      await owner.page.getByRole('button', { name: 'Close', exact: true }).click()
      return link
    }

    async function join(
      link: string,
      name: string,
      options: WorkbenchPageOptions = {},
    ): Promise<WorkbenchPage> {
      const guest = await fixture.openSignedOut(options)
      await guest.page.goto(link)
      await guest.page.getByLabel('Your name').fill(name)
      await guest.button('Join').click()
      await guest.page.getByText('invited you to a session').waitFor()
      await guest.page.locator('#open').click()
      await guest.first.until(({ status }) => status === 'attached')
      return guest
    }

    test('keep their size in an inactive tab', async () => {
      await using workbench = await fixture.openPage()
      const { rows, cols } = await workbench.first.until(() => true)
      await workbench.first.run('rm -f now; mkfifo now; echo wait"ing"; (read < now; stty size)')
      await workbench.first.waitFor('\nwaiting')
      await workbench.page.keyboard.press('Control+Shift+Backquote')
      await workbench.first.ready()
      await workbench.first.run('echo > now')
      await workbench.first.waitFor(/> $|>$/)
      await workbench.page.keyboard.press('Control+Shift+ArrowUp')
      expect(await workbench.first.waitFor(/^\d+ \d+$/m)).toContain(`\n${rows} ${cols}`)

      // Also after a reload in which they were never visible.
      await workbench.first.run('clear; (read < now; stty size)')
      await workbench.page.keyboard.press('Control+Shift+ArrowDown')
      await workbench.page.reload()
      expect(await workbench.first.read('echo > now; sleep 0.1; echo done')).toBe('done')
      await workbench.page.keyboard.press('Control+Shift+ArrowUp')
      expect(await workbench.first.waitFor(/^\d+ \d+$/m)).toContain(`${rows} ${cols}`)
    })

    test('fit a smaller window of a late viewer', async () => {
      await using owner = await fixture.openPage({ viewport: { width: 1280, height: 800 } })
      await using _ = await join(await share(owner, 'View only'), 'Ann')
      const viewport = { width: 1000, height: 640 }
      await using late = await join(await share(owner, 'View only'), 'Late', { viewport })
      // The participant bar reduces the owner's terminal.
      const isTold = async (): Promise<boolean> => {
        const { drawn } = await owner.first.until(() => true)
        const { cols, rows } = await late.first.until(() => true)
        const words = await late.page.locator('.status-bar').innerText()
        return drawn.join('×') === `${cols}×${rows}` && words.includes(drawn.join('×'))
      }
      await eventually(isTold, { what: 'the size of the owner' })
      const isWhole = (): Promise<boolean> =>
        late.first.element.evaluate((place) => {
          const screen = place.querySelector('.xterm-screen')?.getBoundingClientRect()
          const { right, bottom } = place.getBoundingClientRect()
          return screen !== undefined && screen.right <= right && screen.bottom <= bottom
        })
      await eventually(isWhole, { what: 'all of it to be in sight' })
      const [terminal, words] = await Promise.all(
        [late.first.element, late.page.locator('.read-only-line')].map((one) => one.boundingBox()),
      )
      expect(words?.y).toBeGreaterThanOrEqual((terminal?.y ?? 0) + (terminal?.height ?? 0))

      // After the exit the font size is the default again.
      await owner.first.run('exit')
      await late.page.locator('.banner.ended').waitFor()
      const letters = () =>
        late.page.locator('.xterm-rows').evaluate((element) => getComputedStyle(element).fontSize)
      await eventually(async () => (await letters()) === '14px', { what: 'letters of their size' })
    })

    /** Ctrl+clicks a text at the end of a line. */
    async function follow(workbench: WorkbenchPage, text: string): Promise<void> {
      const lines = (await workbench.first.text()).split('\n')
      const row = lines.findLastIndex((line) => line.endsWith(text))
      const box = await workbench.first.element.locator('.xterm-screen').boundingBox()
      const { drawn } = await workbench.first.until(() => true)
      // The last character, which a misplaced link would miss.
      const cells = Array.from(lines[row] ?? '', (one) => (/\p{Script=Han}/u.test(one) ? 2 : 1))
      const column = cells.reduce((sum: number, width) => sum + width, -0.5)
      const { x = 0, y = 0, width = 0, height = 0 } = box ?? {}
      await workbench.page.mouse.move(x + 2, y + height - 2)
      await workbench.page.mouse.move(x + (column * width) / drawn[0], y + ((row + 0.5) * height) / drawn[1])
      await workbench.first.element.locator('.xterm-cursor-pointer').waitFor()
      await workbench.page.keyboard.down('Control')
      await workbench.page.mouse.down()
      await workbench.page.mouse.up()
      await workbench.page.keyboard.up('Control')
    }

    test('open printed paths relative to the shell’s directory', async () => {
      await using workbench = await fixture.openPage()
      const open = () => workbench.page.locator('.file-path:visible')
      let times = 0
      const followAfter = async (command: string): Promise<void> => {
        await workbench.page.getByRole('tab').first().click()
        times += 1
        await workbench.first.run(`${command}; clear; echo 漢字 ${times} er/café.ts:2:3`)
        await workbench.first.waitFor(new RegExp(`^漢字 ${times} er.*\\n>`))
        await follow(workbench, 'er/café.ts:2:3')
      }
      await workbench.first.run(
        'root=$PWD; mkdir -p deep/er other/er; seq 100 102 | tee deep/er/café.ts > other/er/café.ts',
      )
      // The shell reports its directory.
      await followAfter('cd deep')
      await open().getByText('deep/er/café.ts', { exact: true }).waitFor()
      await workbench.page.locator('.cm-content:visible').getByText('101').waitFor()
      await workbench.page.keyboard.type('X')
      await workbench.page.locator('.cm-content:visible').getByText('10X1').waitFor()
      await workbench.page.keyboard.press('Control+Z')

      // From another directory it is found by name.
      await followAfter('cd /tmp')
      const which = workbench.page.getByRole('dialog', { name: 'Choose a file' })
      await which.getByText('other/er/café.ts').click()
      await open().getByText('other/er/café.ts', { exact: true }).waitFor()
      await followAfter('rm -r $root/other')
      await open().getByText('deep/er/café.ts', { exact: true }).waitFor()
      await followAfter('rm -r $root/deep')
      await workbench.page.getByText('File not found: er/café.ts').waitFor()
    })

    test('notice at once when the network goes and returns', async () => {
      await using workbench = await fixture.openPage()
      const bar = workbench.page.locator('.status-bar')
      await bar.getByText('In control').waitFor()
      await bar.getByTitle('Round-trip time').waitFor()
      const { rows, drawn } = await workbench.first.until(() => true)
      await workbench.first.run('trap "echo resized" WINCH; seq 100')
      await workbench.first.waitFor('\n100')
      await workbench.context.setOffline(true)
      const banner = workbench.page.locator('.banner.waiting')
      await banner.waitFor()
      await bar.getByText('Disconnected').waitFor()
      expect(await bar.innerText()).not.toMatch(/In control| ms/)
      await workbench.first.until((facts) => facts.drawn[1] < drawn[1])
      const [above, below] = await Promise.all([workbench.first.element.boundingBox(), banner.boundingBox()])
      expect((above?.y ?? 0) + (above?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0)
      await workbench.first.type('echo "typed mean""while"\n')

      await workbench.context.setOffline(false)
      await workbench.first.waitFor('typed meanwhile')
      await workbench.first.until((facts) => facts.drawn.join() === drawn.join() && facts.rows === rows)
      expect(await banner.count()).toBe(0)
      await bar.getByText('In control').waitFor()
      // The program saw no resize.
      expect(await workbench.first.read('stty size')).toBe(`${drawn[1]} ${drawn[0]}`)
      expect(await workbench.first.text()).not.toContain('\nresized')
    })

    test('mark an inactive tab whose bell rings, and accept text from the first letter', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run(
        'rm -f now; mkfifo now; echo wait"ing"; (read < now; printf "\\a"; echo rang)',
      )
      await workbench.first.waitFor('\nwaiting')
      await workbench.page.keyboard.press('Control+Shift+Backquote')
      await workbench.first.ready()
      const tab = workbench.page.getByRole('tab').first()
      expect(await tab.locator('.tab-bell').count()).toBe(0)
      await workbench.first.run('echo > now')
      await tab.locator('.tab-bell').waitFor()
      // The keys of the shortcut were released in another terminal.
      await tab.click()
      // Without key events, as from phones or speech input.
      await workbench.page.keyboard.insertText('first letter')
      await workbench.first.waitFor('> first letter')
      expect(await tab.locator('.tab-bell').count()).toBe(0)
    })

    test('say who requests control, to both sides', async () => {
      await using owner = await fixture.openPage()
      await using guest = await join(await share(owner, 'Can type'), 'Carl')
      await guest.button('Request control').click()
      await guest.page.getByText(/^Control requested. Waiting for owner/).waitFor()
      await owner.page.getByText(/^Control requested by guest Carl/).waitFor()
      await owner.button(/^Give control to guest Carl/).click()
      await guest.first.until(({ role }) => role === 'driver')
      await guest.page.locator('.participant-text', { hasText: /^You have control$/ }).waitFor()
    })

    test('report a stopped or destroyed sandbox', async () => {
      await using owner = await fixture.openPage()
      await using guest = await join(await share(owner, 'View only'), 'Gus')
      await guest.page.locator('.read-only-line').waitFor()
      await guest.first.until(({ role }) => role === 'viewer')
      await owner.button('Stop dev').click()
      const stop = owner.page.getByRole('dialog').getByRole('button', { name: /^Stop/ })
      await stop.click()
      for (const { page } of [owner, guest]) {
        await page.locator('.banner.ended').getByText('Sandbox stopped').waitFor()
        expect(await page.getByText('it ends within').count()).toBe(0)
        expect(await page.locator('.read-only-line').count()).toBe(0)
        expect(await page.locator('.status-bar').innerText()).not.toMatch(/In control| ms/)
      }
      await guest.page.locator('.banner.ended').getByRole('button', { name: 'Close' }).click()
      await guest.page.getByText('No open tabs').waitFor()

      await owner.button('New shell').click()
      await owner.first.ready()
      await owner.button('Destroy dev').click()
      await owner.page
        .getByRole('dialog')
        .getByRole('button', { name: /^Destroy/ })
        .click()
      await owner.page.locator('.banner.ended').getByText('Sandbox destroyed').waitFor()
    })
  },
)
