import { resolve } from 'node:path'
import { eventually } from '@sandwire/testing'
import type { TerminalController } from '@sandwire/react'
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { openSharedBrowser } from './browser.ts'
import { type RunningHost, startHost } from './control.ts'
import { showRuns } from './screen.ts'
import { share } from './shared.ts'
import { findTerminals } from './workbench-page.ts'

const MAIN = resolve(import.meta.dir, '../../../apps/host/src/main.ts')
/** Generous, for a loaded machine. */
const WAIT_MS = 60_000

/** Poll interval while waiting for a terminal. */
const POLL_MS = 20

declare const controllers: () => readonly TerminalController[]

export interface WorkbenchPageOptions extends BrowserContextOptions {
  /** Default: the shared one. */
  readonly browser?: Browser
  /** Default: the sign-in that all pages of the owner share. */
  readonly cookies?: Cookies
}

type Cookies = Awaited<ReturnType<BrowserContext['cookies']>>

/** Creates a sign-in link for the owner of a host. */
export async function makeSignInLink({ data }: Pick<RunningHost, 'data'>): Promise<string> {
  const child = Bun.spawn([process.execPath, MAIN, 'signin', '--data', data], {
    stdout: 'pipe',
    env: { ...process.env, XDG_CONFIG_HOME: `${data}/config` },
  })
  return (await new Response(child.stdout).text()).trim()
}

/** A real host, with Chromium. */
export class WorkbenchFixture implements AsyncDisposable {
  readonly host: RunningHost
  readonly browser: Browser
  /** Origin of the page; cookies belong to its host name. */
  readonly origin: string
  #cookies: Promise<Cookies> | undefined

  private constructor(host: RunningHost, browser: Browser, origin: string) {
    this.host = host
    this.browser = browser
    this.origin = origin
  }

  /** The shared host and browser, without the sandboxes that other test files left. */
  static async open(): Promise<WorkbenchFixture> {
    const fixture = await share('workbench', () => WorkbenchFixture.start({}))
    await fixture.#destroySandboxes()
    return fixture
  }

  /** A host of its own, with the shared browser. */
  static async start(options: Parameters<typeof startHost>[0]): Promise<WorkbenchFixture> {
    const [host, browser] = await Promise.all([startHost(options), openSharedBrowser()])
    return new WorkbenchFixture(host, browser, new URL(await makeSignInLink(host)).origin)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.host.stop()
  }

  async #destroySandboxes(): Promise<void> {
    const { sandboxes } = (await (await this.host.fetch('/api/sandboxes')).json()) as {
      readonly sandboxes: readonly { readonly id: string }[]
    }
    await Promise.all(
      sandboxes.map(({ id }) => this.host.fetch(`/api/sandboxes/${id}`, { method: 'DELETE' })),
    )
  }

  /** Creates a sign-in link for the owner. */
  link(): Promise<string> {
    return makeSignInLink(this.host)
  }

  /** Creates a separate sign-in of the owner. */
  async signIn(): Promise<Cookies> {
    const { origin, host, hostname, hash } = new URL(await this.link())
    // Without a page: reading cookies from Chromium sometimes never ends under Bun.
    const response = await this.host.fetch('/api/signin', {
      method: 'POST',
      headers: { host, origin, 'content-type': 'application/json', authorization: '' },
      body: JSON.stringify({ code: hash.slice(1) }),
    })
    const [, name = '', value = ''] = /^([^=]+)=([^;]+)/.exec(response.headers.get('set-cookie') ?? '') ?? []
    if (value === '') throw new Error(`Cannot sign in: ${response.status} ${await response.text()}`)
    return [
      {
        name,
        value,
        domain: hostname,
        path: '/',
        expires: -1,
        httpOnly: true,
        secure: true,
        sameSite: 'Strict',
      },
    ]
  }

  /** A page of the owner in a context of its own, with a shell. */
  async openPage(options: WorkbenchPageOptions = {}): Promise<WorkbenchPage> {
    const { cookies = await (this.#cookies ??= this.signIn()), ...rest } = options
    const workbench = await this.openSignedOut(rest)
    await workbench.context.addCookies(cookies)
    await workbench.page.goto(this.origin)
    await workbench.first.ready()
    return workbench
  }

  /** A page without a sign-in. */
  async openSignedOut({
    browser = this.browser,
    ...options
  }: WorkbenchPageOptions = {}): Promise<WorkbenchPage> {
    const context = await browser.newContext({
      viewport: {
        width: 1200,
        height: 800,
      },
      permissions: ['clipboard-read', 'clipboard-write'],
      ...options,
    })
    context.setDefaultTimeout(WAIT_MS)
    await context.addInitScript(findTerminals)
    return new WorkbenchPage(this, context, await context.newPage())
  }

  /** The whole output of a session, while its log is complete. */
  async readOutput(terminal: TerminalView): Promise<Uint8Array> {
    const session = await terminal.session()
    const [sandbox = ''] = session.split('.')
    const parts: Uint8Array[] = []
    for (let from = 0; ;) {
      const answer = await this.host.fetch(
        `/api/sandboxes/${sandbox}/sessions/${session}/output?from=${from}`,
      )
      if (!answer.ok || Number(answer.headers.get('sandwire-from')) !== from)
        throw new Error(`Cannot read the output from ${from}: ${answer.status} ${await answer.text()}`)
      parts.push(await answer.bytes())
      from = Number(answer.headers.get('sandwire-next'))
      if (from >= Number(answer.headers.get('sandwire-end'))) return Buffer.concat(parts)
    }
  }
}

/** Limit for closing a page. */
const CLOSE_MS = 10_000

/** A user's page. */
export class WorkbenchPage implements AsyncDisposable {
  readonly fixture: WorkbenchFixture
  readonly context: BrowserContext
  readonly page: Page
  readonly errors: string[] = []

  constructor(fixture: WorkbenchFixture, context: BrowserContext, page: Page) {
    this.fixture = fixture
    this.context = context
    this.page = page
    page.on('pageerror', (error) => this.errors.push(String(error)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Chromium sometimes never closes a page that is navigating; it ends with the browser.
    await Promise.race([this.context.close().catch(() => undefined), Bun.sleep(CLOSE_MS)])
  }

  get first(): TerminalView {
    return this.terminal(0)
  }

  /** A visible terminal by index. */
  terminal(index: number): TerminalView {
    return new TerminalView(this, index)
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name })
  }

  clipboard(): Promise<string> {
    return this.page.evaluate(() => navigator.clipboard.readText())
  }

  /** Makes the page request its lists now, instead of at its next poll. */
  async refreshLists(): Promise<void> {
    await this.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  }

  /** Runs a command from the palette. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press('Control+Shift+P')
    const field = this.page.getByRole('combobox', { name: 'Commands' })
    await field.fill(title)
    await field.press('Enter')
  }
}

/** State of a terminal, besides its text. */
export interface TerminalFacts {
  readonly status: string
  readonly role: string | undefined
  readonly session: string | undefined
  readonly cols: number
  readonly rows: number
  /** The drawn size, which may not be reported yet. */
  readonly drawn: readonly [number, number]
}

/** A terminal in a page, read through its controller and typed into by keyboard. */
export class TerminalView {
  readonly workbench: WorkbenchPage
  readonly #index: number

  constructor(workbench: WorkbenchPage, index: number) {
    this.workbench = workbench
    this.#index = index
  }

  get element(): Locator {
    return this.workbench.page.locator('.terminal-surface:visible').nth(this.#index)
  }

  /** Scrollback and screen, without trailing whitespace. */
  async text(): Promise<string> {
    const text = await this.workbench.page.evaluate(
      (index) => controllers()[index]?.surface.readText() ?? '',
      this.#index,
    )
    return text.trimEnd()
  }

  /** The rendered rows, in the format of `colorsOf`. */
  async colors(): Promise<readonly string[]> {
    const rows = await this.workbench.page.evaluate((index) => {
      const element = document.querySelectorAll('.xterm-rows')[index]
      return Array.from(element?.children ?? [], (row) =>
        Array.from(row.querySelectorAll('span'), (span) => ({
          color: /xterm-fg-(\d+)/.exec(span.className)?.[1] ?? '-',
          text: span.textContent,
        })),
      )
    }, this.#index)
    return rows.map(showRuns)
  }

  async facts(): Promise<TerminalFacts | undefined> {
    return this.workbench.page.evaluate((index) => {
      const controller = controllers()[index]
      if (controller === undefined) return undefined
      const { status, role, session, cols, rows } = controller.state.get()
      const { surface } = controller
      return { status: status.kind, role, session, cols, rows, drawn: [surface.cols, surface.rows] as const }
    }, this.#index)
  }

  async session(): Promise<string> {
    return (await this.until(({ session }) => session !== undefined)).session ?? ''
  }

  /** Waits until its state satisfies a condition. */
  async until(is: (facts: TerminalFacts) => boolean): Promise<TerminalFacts> {
    let last: TerminalFacts | undefined
    return eventually(
      async () => {
        last = await this.facts()
        if (last !== undefined && is(last)) return last
        await Bun.sleep(POLL_MS)
        return undefined
      },
      { what: 'the terminal', timeoutMs: WAIT_MS },
    ).catch((cause: unknown) => {
      throw new Error(`${is.toString()} does not come true of ${JSON.stringify(last)}`, { cause })
    })
  }

  /** Waits until it contains a text. */
  async waitFor(wanted: string | RegExp): Promise<string> {
    const pattern =
      typeof wanted === 'string' ? { text: wanted } : { source: wanted.source, flags: wanted.flags }
    try {
      // Polling inside the page costs less than repeated requests to it.
      const found = await this.workbench.page.waitForFunction(
        ([index, searched]) => {
          const text = (controllers()[index]?.surface.readText() ?? '').trimEnd()
          const isFound =
            'text' in searched
              ? text.includes(searched.text)
              : new RegExp(searched.source, searched.flags).test(text)
          return isFound ? { text } : false
        },
        [this.#index, pattern] as const,
        { polling: POLL_MS, timeout: WAIT_MS },
      )
      const { text } = (await found.jsonValue()) as { readonly text: string }
      return text
    } catch (cause) {
      throw new Error(`${String(wanted)} did not come; there is:\n${await this.text()}`, { cause })
    }
  }

  /** Waits for the prompt and shortens it. */
  async ready(): Promise<void> {
    await this.until(({ status }) => status === 'attached')
    await this.waitFor(/[$#] ?$/)
    await this.run("PS1='> '; clear")
    await this.waitFor(/^> ?$/)
  }

  focus(): Promise<void> {
    return this.element.click()
  }

  /** Types with key events. */
  async type(text: string): Promise<void> {
    await this.element.locator('textarea').focus()
    await this.workbench.page.keyboard.type(text)
  }

  /** Types a line and Enter. */
  async run(command: string): Promise<void> {
    await this.element.locator('textarea').focus()
    // xterm.js ignores inserted text while it considers a key held down, as after a shortcut.
    await this.workbench.page.keyboard.press('Shift')
    await this.workbench.page.keyboard.insertText(command)
    await this.workbench.page.keyboard.press('Enter')
  }

  /** Runs a command at the prompt and returns its output. */
  async read(command: string): Promise<string> {
    const mark = crypto.randomUUID().slice(0, 8)
    await this.run(`echo "<${mark}"; ${command}; echo "${mark}"">"`)
    const text = await this.waitFor(`${mark}>`)
    return text.slice(text.lastIndexOf(`\n<${mark}`) + mark.length + 2, text.lastIndexOf(`${mark}>`)).trim()
  }

  /** Pastes as with Ctrl+V. */
  async paste(text: string): Promise<void> {
    await this.element.locator('textarea').evaluate((element, pasted) => {
      const clipboardData = new DataTransfer()
      clipboardData.setData('text/plain', pasted)
      const bubbles = { bubbles: true, cancelable: true }
      element.dispatchEvent(new ClipboardEvent('paste', { ...bubbles, clipboardData }))
    }, text)
  }
}
