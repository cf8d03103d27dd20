import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import type { Browser, Page } from 'playwright-core'
import { findBrowserProblem, openSharedBrowser } from './support/browser.ts'
import { type PageServer, servePage } from './support/page-server.ts'
import type { TerminalPage } from './terminal-page.tsx'

declare const page: TerminalPage

const problem = findBrowserProblem()

describe.skipIf(problem !== undefined)(
  `the terminal component in a third-party page${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let browser: Browser
    let server: PageServer
    let tab: Page
    /** Connections that the page opened. */
    let sockets = 0
    beforeAll(async () => {
      server = await servePage(new URL('./terminal-page.tsx', import.meta.url).pathname)
      browser = await openSharedBrowser()
    })
    afterAll(async () => {
      await tab?.close()
      await server?.[Symbol.asyncDispose]()
    })

    async function open(): Promise<void> {
      await tab?.close()
      tab = await browser.newPage()
      sockets = 0
      tab.on('websocket', () => {
        sockets += 1
      })
      await tab.goto(server.pageUrl)
    }

    const told = () => tab.evaluate(() => page.told)
    const text = () => tab.evaluate(() => page.text())

    test('starts one process in strict mode and reports its exit', async () => {
      await open()
      const before = await server.countCreated()
      await tab.evaluate((url) => page.showOwn(url, 'sh', ['-c', 'echo hello; exit 3']), server.url)
      await eventually(async () => (await told()).includes('exit 3 null'), { what: 'the exit' })
      expect(await server.countCreated()).toBe(before + 1)
      expect(sockets).toBe(1)
      expect((await told()).filter((word) => word === 'ticket')).toHaveLength(1)
      // At the first attempt.
      expect(await told()).not.toContain('reconnecting')
      expect((await told()).filter((word) => word.startsWith('exit '))).toEqual(['exit 3 null'])
    })

    test('disposes its own terminal when unmounted', async () => {
      await open()
      await tab.evaluate((url) => page.showOwn(url, 'cat', []), server.url)
      await eventually(async () => (await told()).includes('attached'), { what: 'the attachment' })
      await tab.evaluate(() => page.hide())
      await eventually(async () => (await server.countEnded()) === (await server.countCreated()), {
        what: 'the end',
      })
      expect(await tab.locator('.xterm').count()).toBe(0)
    })

    test('keeps a given terminal, which can be mounted again', async () => {
      await open()
      const before = await server.countCreated()
      await tab.evaluate((url) => page.showGiven(url), server.url)
      await eventually(async () => (await text()) !== '', { what: 'the prompt' })
      await tab.evaluate(() => page.type('x=kept; echo on"e"\r'))
      await eventually(async () => (await text()).includes('\none'), { what: 'the output' })
      await tab.evaluate(() => page.hide())
      await tab.evaluate((url) => page.showGiven(url), server.url)
      await tab.locator('.xterm').waitFor()
      await tab.evaluate(() => page.hide())
      await tab.evaluate((url) => page.showBare(url), server.url)
      await tab.locator('.xterm-screen').click()
      await tab.keyboard.type('echo $x\n')
      await eventually(async () => (await text()).includes('\nkept'), { what: 'the same shell' })
      expect(await text()).toContain('\none')
      expect(await server.countCreated()).toBe(before + 1)
      expect(sockets).toBe(1)
    })
  },
)
