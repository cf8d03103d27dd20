import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { PageRecorder, ForeignServer } from './support/page-recorder.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)
const TIMEOUT_MS = 120_000
const ESC = '\u001b'
const BEL = '\u0007'
const ST = `${ESC}\\`
/** The command an attacker wants to run. */
const MARK = 'touch pwned'

/** Sequences whose replies would contain the attacker's or the user's text. */
const VECTORS: Readonly<Record<string, string>> = {
  title: `${ESC}]0;${MARK}${BEL}${ESC}[21t`,
  iconTitle: `${ESC}]1;${MARK}${BEL}${ESC}[20t`,
  titleStack: `${ESC}]2;\n${MARK}\n${BEL}${ESC}[22;0t${ESC}[23;0t${ESC}[21t`,
  setting: `${ESC}P$q;${MARK}${ST}`,
  capability: `${ESC}P+q666f6f;\n${MARK};aa\n${ST}`,
  font: `${ESC}]50;${MARK}${BEL}${ESC}]50;?${BEL}`,
  color: `${ESC}]4;0;${MARK}${BEL}${ESC}]4;0;?${BEL}`,
  version: `${ESC}[>q`,
  answerback: `\u0005`,
  kind: `${ESC}[c`,
  checksum: `${ESC}[1;1;1;1;80;1*y`,
  clipboardRead: `${ESC}]52;c;?${BEL}`,
  clipboardWrite: `${ESC}]52;c;${btoa(MARK)}${BEL}${ESC}]52;c;?${BEL}`,
  macro: `${ESC}P1;0;1!z${Buffer.from(MARK).toString('hex')}${ST}${ESC}[1*z`,
  keys: `${ESC}P1;1|17/${Buffer.from(MARK).toString('hex')}${ST}`,
}

describe.skipIf(problem !== undefined)(
  `untrusted output and files in the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    let workbench: WorkbenchPage
    let recorder: PageRecorder
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
      workbench = await fixture.openPage()
      recorder = await PageRecorder.watch(workbench.context, workbench.page)
      await workbench.page.reload()
      await workbench.first.until(({ status }) => status === 'attached')
    }, TIMEOUT_MS)
    afterAll(async () => {
      await workbench[Symbol.asyncDispose]()
    })

    let writes = 0
    /** Writes a file with any name and content. */
    async function put(name: string, content: string | Uint8Array): Promise<void> {
      const [encodedName, encoded] = [name, content].map((part) => Buffer.from(part).toString('base64'))
      writes += 1
      await workbench.first.run(
        `base64 -d <<< '${encoded}' > "$(base64 -d <<< '${encodedName}')"; clear; echo writ"ten" ${writes}`,
      )
      // The prompt alone also shows before the command has run.
      await workbench.first.waitFor(new RegExp(`^written ${writes}\\n> ?$`))
    }

    /** The shell treats replies as keys; one that starts a history search would swallow what is typed next. */
    function comeToPrompt(): Promise<unknown> {
      return eventually(
        async () => {
          await workbench.page.keyboard.press('Control+c')
          await workbench.first.run('clear')
          await Bun.sleep(500)
          return /^> ?$/.test(await workbench.first.text())
        },
        { what: 'an empty prompt', timeoutMs: TIMEOUT_MS / 4 },
      )
    }

    const toTerminal = (): Promise<void> => workbench.page.getByRole('tab').first().click()
    const openPanel = async (name: string): Promise<void> => {
      const button = workbench.page
        .getByRole('navigation', { name: 'Panels' })
        .getByRole('button', { name, exact: true })
      if ((await button.getAttribute('aria-pressed')) !== 'true') await button.click()
    }
    const pwned = (): Promise<unknown> => workbench.page.evaluate(() => Reflect.get(globalThis, 'pwned'))

    test(
      'no escape sequence makes the terminal send text of the output (threat T23)',
      async () => {
        await put('vectors', Object.values(VECTORS).join(''))
        // Replies are recorded instead of executed.
        await workbench.first.run(
          'stty raw -echo; cat vectors; timeout --foreground 2 cat > answers; stty sane; echo; echo all "kept"',
        )
        await workbench.first.waitFor('all kept')
        await put('nothing', '')
        const answers = await workbench.first.read('base64 -w0 answers')
        const sent = Buffer.from(answers.replaceAll(/\s/g, ''), 'base64').toString('latin1')
        // The device attributes are answered, so the recording works.
        expect(sent).toContain(`${ESC}[?1;2c`)
        expect(sent).not.toContain('touch')
        expect(sent).not.toContain('pwned')
        expect(sent).not.toMatch(new RegExp(`${ESC}\\\\][lL]`))
        expect(sent).not.toContain(`${ESC}]52`)
        // Nothing runs at a prompt either.
        await workbench.first.run('cat vectors; echo; echo al"l"')
        await workbench.first.waitFor('all')
        await comeToPrompt()
        expect(await workbench.first.read('ls pwned 2>&1')).toContain('No such file')
      },
      TIMEOUT_MS,
    )

    test(
      'an endless escape sequence does no harm (threat T23)',
      async () => {
        await workbench.first.run(
          `printf '\\033]0;'; head -c 12M /dev/zero | tr '\\0' a; printf '\\033\\\\'; echo still "here"`,
        )
        await workbench.first.waitFor('still here')
        expect((await workbench.page.title()).length).toBeLessThan(200)
      },
      TIMEOUT_MS,
    )

    test(
      'programs write to the clipboard only if allowed (threat T23)',
      async () => {
        const write = (text: string): Promise<void> =>
          workbench.page.evaluate((own) => navigator.clipboard.writeText(own), text)
        const print = async (text: string): Promise<void> => {
          await workbench.first.run(`printf '\\033]52;c;${btoa(text)}\\007'; echo prin"ted" ${text.length}`)
          await workbench.first.waitFor(`printed ${text.length}`)
        }
        await write('mine')
        await print('from the program')
        expect(await workbench.clipboard()).toBe('mine')
        await workbench.page.evaluate(() => {
          const settings: unknown = JSON.parse(localStorage.getItem('sandwire.settings') ?? '{}')
          localStorage.setItem(
            'sandwire.settings',
            JSON.stringify({ ...Object(settings), allowsClipboardWrite: true }),
          )
        })
        await workbench.page.reload()
        await workbench.first.until(({ status }) => status === 'attached')
        await print('allowed by now')
        await eventually(async () => (await workbench.clipboard()) === 'allowed by now', {
          what: 'the clipboard to be written',
        })
        await workbench.page.evaluate(() => localStorage.removeItem('sandwire.settings'))
        await workbench.page.reload()
        await workbench.first.until(({ status }) => status === 'attached')
      },
      TIMEOUT_MS,
    )

    test(
      'only web links open, without access to their opener (threat T23)',
      async () => {
        await using foreign = new ForeignServer()
        const links = {
          'javascript:globalThis.pwned=1': false,
          'data:text/html,<script>opener.pwned=1</script>': false,
          'file:///etc/passwd': false,
          'blob:nothing': false,
          [`${foreign.origin}/good`]: true,
        }
        const printed = Object.keys(links)
          .map(
            (address, at) => `\\033]8;;${address}\\033\\\\link-${at}${'-'.repeat(20)}\\033]8;;\\033\\\\\\n`,
          )
          .join('')
        await workbench.first.run(`clear; printf '${printed}'`)
        await workbench.first.waitFor(/^link-0-+\n[^]*\n> ?$/)
        // Chromium blocks some of these by itself; the page must not even try.
        await workbench.page.evaluate(() => {
          const opened: unknown[] = []
          const openWindow = window.open.bind(window)
          Object.assign(globalThis, { opened })
          window.open = (...args) => {
            opened.push(args)
            return openWindow(...args)
          }
        })
        const screen = workbench.first.element.locator('.xterm-screen')
        const box = await screen.boundingBox()
        const { rows } = await workbench.first.until(() => true)
        const lines = (await workbench.first.text()).split('\n')
        for (const at of Object.keys(links).keys()) {
          const row = lines.findIndex((line) => line.startsWith(`link-${at}-`))
          const y = ((row + 0.5) * (box?.height ?? 0)) / rows
          await screen.hover({ position: { x: 40, y } })
          await screen.click({ position: { x: 40, y } })
          await screen.click({ position: { x: 40, y }, modifiers: ['Control'] })
        }
        const popup = await eventually(() => recorder.opened[0], { what: 'the good link to open' })
        await popup.waitForURL(`${foreign.origin}/good`)
        expect(await popup.evaluate(() => [window.opener === null, document.referrer])).toEqual([true, ''])
        const opened = await workbench.page.evaluate(() => Reflect.get(globalThis, 'opened') as unknown[][])
        for (const call of opened)
          expect(call).toEqual([`${foreign.origin}/good`, '_blank', expect.stringContaining('noopener')])
        for (const opened of recorder.opened) expect(opened.url()).toBe(`${foreign.origin}/good`)
        expect(await pwned()).toBeUndefined()
        for (const opened of recorder.opened.splice(0)) await opened.close()
      },
      TIMEOUT_MS,
    )

    test(
      'names and contents of files run no scripts and send no requests (threat T25)',
      async () => {
        await using foreign = new ForeignServer()
        const other = foreign.origin
        const before = recorder.asked.length
        const run = 'globalThis.pwned=1;parent.pwned=1'
        const name = `"><img src=x onerror=${run.replaceAll(';', '')}>.md`
        const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="${run}" width="50" height="50"><script>${run}</script><image href="${other}/i.png"/><rect width="9" height="9"/></svg>`
        const files: Readonly<Record<string, string | Uint8Array>> = {
          [name]: `[x](javascript:${run}) <img src=x onerror="${run}"> ![p](${other}/p.png)`,
          'page.html': `<script>${run}</script><img src="${other}/x.png" onerror="${run}">`,
          'picture.svg': svg,
          'picture.png': svg,
          // Not UTF-8, so it is shown as an image instead of text.
          'wide.svg': Buffer.from(`\u{feff}${svg}`, 'utf16le'),
        }
        for (const [file, content] of Object.entries(files)) await put(file, content)
        const { page } = workbench
        await openPanel('Files')
        for (const file of Object.keys(files)) {
          await page.getByRole('treeitem', { name: file }).click()
          await page.locator('.file-pane:visible').waitFor()
          const isBroken = page.locator('.file-pane .empty:visible', { hasText: 'Cannot show this image' })
          await page.locator('.cm-content:visible, .picture img:visible').or(isBroken).first().waitFor()
        }
        const address = (await page.locator('.picture img:visible').getAttribute('src')) ?? ''
        // As from "Open image in new tab" or the address bar, which apply no policy of the page that shows the image.
        const alone = await workbench.context.newPage()
        await alone.goto(address)
        expect(await alone.evaluate(() => [document.documentElement.tagName, self.origin])).toEqual([
          'svg',
          'null',
        ])
        await alone.close()
        recorder.opened.length = 0
        expect(await pwned()).toBeUndefined()
        expect(foreign.asked).toEqual([])
        const hosts = recorder.asked.slice(before).filter((url) => url.startsWith('http'))
        expect(new Set(hosts.map((url) => new URL(url).origin))).toEqual(new Set([fixture.origin]))
      },
      TIMEOUT_MS,
    )

    test(
      'a file opened by its URL is a download (threat T25)',
      async () => {
        const run = 'globalThis.pwned=1'
        const files: Readonly<Record<string, string>> = {
          'page.html': `<script>${run}</script>`,
          'picture.svg': `<svg xmlns="http://www.w3.org/2000/svg"><script>${run}</script></svg>`,
          'page.xml': `<html xmlns="http://www.w3.org/1999/xhtml"><script>${run}</script></html>`,
          'page.pdf': '%PDF-1.4\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\n',
        }
        await toTerminal()
        const [sandbox = ''] = (await workbench.first.session()).split('.')
        const base = `/api/workspaces/${sandbox}`
        // Not by the terminal, whose prompt shows before a command has run.
        for (const [file, body] of Object.entries(files)) {
          const written = await fixture.host.fetch(`${base}/file?path=${file}`, { method: 'PUT', body })
          expect(written.ok).toBe(true)
        }
        const saved = await fixture.host.fetch(`/api/sandboxes/${sandbox}/checkpoints`, { method: 'POST' })
        expect(saved.status).toBe(201)
        const urls = [
          ...Object.keys(files).map((file) => `${base}/file?path=${file}`),
          ...Object.keys(files).map((file) => `/files/${sandbox}/workspace/${file}`),
          `${base}/archive?path=.`,
        ]
        for (const url of urls) {
          const answer = await fixture.host.fetch(url)
          expect([url, answer.status]).toEqual([url, 200])
          expect(answer.headers.get('content-type')).toMatch(/^application\/(octet-stream|x-tar)$/)
          expect(answer.headers.get('content-disposition')).toStartWith('attachment')
          expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
          expect(answer.headers.get('content-security-policy')).toEndWith('sandbox')
          await answer.body?.cancel()
          // A page of ours opens it, so the browser sends the cookie.
          const started = workbench.page.waitForEvent('download')
          await workbench.page.evaluate((address) => location.assign(address), url)
          const download = await started
          expect(new URL(download.url()).pathname).toBe(new URL(url, fixture.origin).pathname)
          await download.cancel()
        }
        expect(workbench.page.url()).toBe(`${fixture.origin}/`)
        expect(await pwned()).toBeUndefined()
      },
      TIMEOUT_MS,
    )

    test(
      'only printable text appears outside the terminal (threat T24)',
      async () => {
        const { page } = workbench
        const bent = '\u202egpj.exe'
        const escape = `${ESC}]0;x${BEL}\u009b31m`
        await toTerminal()
        await workbench.first.run('clear')
        await put(`a${bent}`, 'bent')
        await put(`b${escape}`, 'escaped')
        await workbench.first.run(
          `git init -q . 2>/dev/null; git config user.email a@b.c; git config user.name "$(printf 'A\\342\\200\\256B')"; ` +
            `git checkout -qb "$(printf 'br\\342\\200\\256anch')"; git commit -qm "$(printf 'm\\342\\200\\256essage')" --allow-empty; ` +
            `printf '\\033]0;t\\342\\200\\256itle\\007'; echo all "set"`,
        )
        await workbench.first.waitFor('all set')
        await page.waitForFunction(() => document.title.startsWith('Terminal: title — '))
        const strays = (): Promise<readonly string[]> =>
          page.evaluate(() => {
            const isStray = (text: string): boolean => /[^\P{C}\n\t]|[\u2028\u2029]/u.test(text)
            const found = [document.title].filter(isStray)
            const walker = document.createTreeWalker(document.body)
            for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
              const element = node instanceof Element ? node : node.parentElement
              // Output and file contents are shown unchanged.
              if (element?.closest('.xterm, .cm-editor') !== null) continue
              if (node instanceof Text && isStray(node.data)) found.push(node.data)
              if (node instanceof Element)
                for (const { name, value } of Array.from(node.attributes))
                  if (isStray(value)) found.push(`${name}=${value}`)
            }
            return found
          })
        await openPanel('Files')
        for (const file of ['agpj.exe', 'b (character 1b) ]0;x (character 07) (character 9b) 31m']) {
          await page.getByRole('treeitem', { name: file }).click()
          await page.locator('.cm-content:visible').waitFor()
          expect(await strays()).toEqual([])
        }
        await openPanel('Search')
        await page.getByLabel('Search in files').fill('bent')
        await page.locator('.found-line').first().waitFor()
        expect(await strays()).toEqual([])
        await openPanel('Git')
        await page.getByText('branch').first().waitFor()
        expect(await strays()).toEqual([])
        await workbench.command('Go to file')
        await page.getByRole('combobox').fill('gpj')
        await page.getByRole('option').first().waitFor()
        expect(await strays()).toEqual([])
      },
      TIMEOUT_MS,
    )
  },
)
