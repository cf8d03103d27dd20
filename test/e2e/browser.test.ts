import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type FaultProxy, openFaultProxy } from '@sandwire/testing'
import type { Browser, Page } from 'playwright-core'
import type { PageApi } from './browser-page.ts'
import { findBrowserProblem, openSharedBrowser } from './support/browser.ts'
import { findFreePort } from './support/free-port.ts'
import { readLines } from './support/lines.ts'

declare const api: PageApi

const problem = findBrowserProblem()
const MAIN = new URL('../../apps/sandboxd/src/main.ts', import.meta.url).pathname

describe.skipIf(problem !== undefined)(
  `the client library in Chromium${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let browser: Browser
    let page: Page
    let foreign: Page
    let pages: ReturnType<typeof Bun.serve>
    let others: ReturnType<typeof Bun.serve>
    let sandboxd: Bun.Subprocess<'ignore', 'pipe', 'ignore'>
    let port: number
    let proxy: FaultProxy

    beforeAll(async () => {
      const built = await Bun.build({
        entrypoints: [new URL('./browser-page.ts', import.meta.url).pathname],
        target: 'browser',
      })
      const script = await built.outputs[0]?.text()
      const serve = (): ReturnType<typeof Bun.serve> =>
        Bun.serve({
          hostname: '127.0.0.1',
          port: 0,
          fetch: ({ url }) =>
            url.endsWith('.js')
              ? new Response(script, { headers: { 'content-type': 'text/javascript' } })
              : new Response('<!doctype html><script src="/page.js"></script>', {
                  headers: { 'content-type': 'text/html' },
                }),
        })
      pages = serve()
      others = serve()
      port = findFreePort()
      proxy = openFaultProxy({ target: { port } })
      // A browser cannot send a bearer token with an upgrade, so this sandboxd has none and lists the page's origin. Behind
      // the proxy the page names the proxy's port as its host.
      const argv = ['--listen', `127.0.0.1:${port}`, '--workspace', '/tmp', '--insecure']
      argv.push('--origin', `http://127.0.0.1:${pages.port}`, '--host', `127.0.0.1:${proxy.port}`)
      sandboxd = Bun.spawn([process.execPath, MAIN, ...argv], {
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'ignore',
      })
      await readLines(sandboxd.stdout).next()
      browser = await openSharedBrowser()
      page = await browser.newPage()
      await page.goto(`http://127.0.0.1:${pages.port}/`)
      foreign = await browser.newPage()
      await foreign.goto(`http://127.0.0.1:${others.port}/`)
    })

    afterAll(async () => {
      await page?.close()
      await foreign?.close()
      sandboxd?.kill()
      proxy?.close()
      await pages?.stop(true)
      await others?.stop(true)
    })

    test('transfers a megabyte both ways', async () => {
      const result = await page.evaluate((url) => api.roundTrip(url, 1_000_000), `http://127.0.0.1:${port}`)
      expect(result.received).toBe(result.sent)
      expect(result.code).toBe(0)
    })

    test('resumes exactly after repeated disconnects', async () => {
      const running = page.evaluate((url) => api.roundTrip(url, 2_000_000), `http://127.0.0.1:${proxy.port}`)
      let cuts = 0
      while (cuts < 5) {
        const before = proxy.stats.bytesToClient
        await Bun.sleep(20)
        if (proxy.stats.bytesToClient > before) cuts += proxy.disconnectAll('reset')
      }
      const result = await running
      expect(result.received).toBe(result.sent)
      expect(result.reconnects).toBeGreaterThan(0)
    })

    test('a page of another origin cannot attach', async () => {
      const created = async (): Promise<string | undefined> => {
        const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
        return /^sandwire_sessions_created_total (\d+)$/m.exec(metrics)?.[1]
      }
      const before = await created()
      const result = await foreign.evaluate((url) => api.failure(url), `http://127.0.0.1:${port}`)
      expect(result).toStartWith('SandwireError')
      expect(await created()).toBe(before)
      expect(before).toBeString()
    })
  },
)
