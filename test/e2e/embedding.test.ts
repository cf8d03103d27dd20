import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import type { Browser, Page } from 'playwright-core'
import { findBrowserProblem, openSharedBrowser } from './support/browser.ts'
import { type RunningHost, startHost } from './support/control.ts'
import { PageProject } from './support/page-project.ts'

const problem = findBrowserProblem()

declare global {
  /** WebSockets of the page. */
  var sockets: WebSocket[]
}

type GiveTicket = (request: Request, sandbox: string) => Promise<Response>

const MAIN = `
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Shell } from './shell'

const place = document.querySelector('#terminal')
if (place === null) throw new Error('The page has no #terminal')
createRoot(place).render(<StrictMode><Shell /></StrictMode>)
`

/** A web server on its own origin, with one script per page. */
function servePages() {
  const files = new Map<string, Blob>()
  const tickets: { give: GiveTicket } = { give: () => Promise.reject(new Error('There are none yet')) }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      if (request.method === 'POST' && pathname === '/ticket') return tickets.give(request, 'dev')
      const file = files.get(pathname)
      if (file !== undefined) return new Response(file)
      const name = pathname.slice(1)
      const html = `<!doctype html><link rel=stylesheet href=/${name}.css><body><div id=terminal style="height:400px"></div><script type=module src=/${name}.js></script>`
      return new Response(html, { headers: { 'content-type': 'text/html' } })
    },
  })
  return { files, tickets, server, origin: `http://localhost:${server.port}` }
}

/** A third-party page and its server, built from the README, and a host that allows its origin or not. */
class Site implements AsyncDisposable {
  readonly host: RunningHost
  readonly #pages: ReturnType<typeof servePages>

  private constructor(host: RunningHost, pages: ReturnType<typeof servePages>) {
    this.host = host
    this.#pages = pages
  }

  static async open(isListed: boolean): Promise<Site> {
    const pages = servePages()
    const host = await startHost({ env: { SANDWIRE_EMBED_ORIGINS: isListed ? pages.origin : undefined } })
    const made = await host.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'dev' }),
    })
    expect(made.status).toBe(201)
    const site = new Site(host, pages)
    await site.#build()
    return site
  }

  /** The README's files with the URLs of this test. */
  async #build(): Promise<void> {
    using project = new PageProject()
    const { origin, files, tickets } = this.#pages
    for (const [name, text] of project.examples)
      project.write(
        name,
        text
          .replaceAll('https://sandwire.example', this.host.url)
          .replaceAll('https://app.example', origin)
          .replaceAll("process.env['SANDWIRE_TOKEN']", JSON.stringify(this.host.token)),
      )
    project.write('main.tsx', MAIN)
    for (const [name, entry] of [
      ['react', 'main.tsx'],
      ['plain', 'plain.ts'],
    ] as const)
      for (const [ending, file] of await project.bundle(entry)) files.set(`/${name}.${ending}`, file)
    const { giveTicket }: { giveTicket: GiveTicket } = await import(join(project.folder, 'server.ts'))
    tickets.give = giveTicket
  }

  get origin(): string {
    return this.#pages.origin
  }

  set giveTicket(give: GiveTicket) {
    this.#pages.tickets.give = give
  }

  async show(browser: Browser, name: 'react' | 'plain'): Promise<{ tab: Page; told: string[] }> {
    const tab = await browser.newPage()
    const told: string[] = []
    tab.on('console', (message) => told.push(message.text()))
    await tab.addInitScript(() => {
      globalThis.sockets = []
      globalThis.WebSocket = class extends WebSocket {
        constructor(url: string | URL, protocols?: string | string[]) {
          super(url, protocols)
          sockets.push(this)
        }
      }
    })
    await tab.goto(`${this.origin}/${name}`)
    return { tab, told }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pages.server.stop(true)
    await this.host.stop()
  }
}

async function screenOf(tab: Page): Promise<string> {
  return (await tab.locator('.xterm-rows').allInnerTexts()).join('\n')
}

test('the examples of the README compile in a strict project that installed the package', () => {
  using project = new PageProject()
  expect([...project.examples.keys()].toSorted()).toEqual([
    'kept.tsx',
    'plain.ts',
    'server.ts',
    'shell.tsx',
    'ticket.ts',
  ])
  expect(project.check()).toBe('')
  project.write(
    'wrong.ts',
    "import { TerminalController } from '@sandwire/react'\nnew TerminalController({ url: 5 })\n",
  )
  expect(project.check()).toContain('wrong.ts(2')
})

describe.skipIf(problem !== undefined)(
  `a terminal in a page of another origin${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let browser: Browser
    let listed: Site
    let unlisted: Site
    beforeAll(async () => {
      ;[browser, listed, unlisted] = await Promise.all([
        openSharedBrowser(),
        Site.open(true),
        Site.open(false),
      ])
    })
    afterAll(async () => {
      await listed?.[Symbol.asyncDispose]()
      await unlisted?.[Symbol.asyncDispose]()
    })

    test.each(['react', 'plain'] as const)('works where the operator allows the origin: %s', async (name) => {
      const { tab } = await listed.show(browser, name)
      await eventually(async () => /[$#]/.test(await screenOf(tab)), { what: 'the prompt' })
      await tab.locator('.xterm-screen').click()
      await tab.keyboard.type('kept=yes; echo $((6*7))x\n')
      await eventually(async () => (await screenOf(tab)).includes('42x'), { what: 'the output' })
      // Reconnects with a ticket for its session.
      await tab.evaluate(() => sockets.at(-1)?.close())
      await eventually(() => tab.evaluate(() => sockets.length === 2), {
        what: 'a new connection',
      })
      await tab.keyboard.type('echo still-$kept\n')
      await eventually(async () => (await screenOf(tab)).includes('still-yes'), {
        what: 'the same shell',
      })
      expect(await tab.getByRole('status').count()).toBe(0)
      await tab.close()
    })

    test('reports that no ticket is available where the origin is not allowed', async () => {
      const { tab, told } = await unlisted.show(browser, 'react')
      const status = tab.getByRole('status')
      await eventually(async () => (await status.innerText()).includes('Cannot get a ticket'), {
        what: 'the words',
      })
      expect(await status.innerText()).toContain('the server of this page answered 403')
      await eventually(() => told.find((line) => line.startsWith('link_lost Cannot get a ticket')), {
        what: 'the error',
      })
      await tab.close()
    })

    test('reports a refused connection where the origin is not allowed', async () => {
      // The server omits the origin.
      unlisted.giveTicket = async (_, sandbox) => {
        const body = JSON.stringify({ sandbox })
        const headers = { 'content-type': 'application/json' }
        const response = await unlisted.host.fetch('/api/tickets', { method: 'POST', headers, body })
        expect(response.status).toBe(201)
        return response
      }
      const { tab, told } = await unlisted.show(browser, 'react')
      const words = `Cannot connect to ${unlisted.host.url}: the server does not respond, does not allow pages of ${unlisted.origin}, or did not accept the ticket`
      const status = tab.getByRole('status')
      await eventually(async () => (await status.innerText()).includes(words), { what: 'the words' })
      await eventually(() => told.includes(`link_lost ${words}`), { what: 'the error' })
      await eventually(async () => (await status.innerText()) === `Disconnected. ${words}.`, {
        what: 'the end of it',
      })
      expect(await screenOf(tab)).not.toMatch(/[$#]/)
      // Even unconnected the terminal fits its container, so that the message is visible.
      expect((await tab.locator('.xterm-screen').boundingBox())?.height).toBeLessThanOrEqual(400)
      await tab.close()
    })
  },
)
