import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CHROMIUM } from '../../test/e2e/support/browser.ts'

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--window-size=1200,800',
]
/** Printed by Chromium when it accepts connections. */
const LISTENING = /DevTools listening on (ws:\/\/\S+)/

interface Answer {
  readonly id?: number
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly message: string }
}

/** Sends commands of the DevTools protocol and matches their answers. */
class DevTools {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, PromiseWithResolvers<Readonly<Record<string, unknown>>>>()
  #lastId = 0

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      const { id = 0, result = {}, error } = JSON.parse(String(data)) as Answer
      if (error === undefined) this.#waiting.get(id)?.resolve(result)
      else this.#waiting.get(id)?.reject(new Error(error.message))
      this.#waiting.delete(id)
    })
  }

  send(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    sessionId?: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    this.#lastId += 1
    const answer = Promise.withResolvers<Readonly<Record<string, unknown>>>()
    this.#waiting.set(this.#lastId, answer)
    this.#socket.send(
      JSON.stringify({ id: this.#lastId, method, params, ...(sessionId === undefined ? {} : { sessionId }) }),
    )
    return answer.promise
  }
}

async function readAddress(stderr: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of stderr) {
    text += decoder.decode(chunk, { stream: true })
    const [, address] = LISTENING.exec(text) ?? []
    if (address !== undefined) return address
  }
  throw new Error(`Chromium did not start: ${text}`)
}

/**
 * A Chromium page without network instrumentation. Playwright receives every WebSocket message with its content, which
 * costs the browser more than the message itself and does not happen in normal use.
 */
export class BarePage implements AsyncDisposable {
  readonly #child: Bun.Subprocess
  readonly #profile: string
  readonly #devTools: DevTools
  readonly #session: string

  private constructor(parts: {
    child: Bun.Subprocess
    profile: string
    devTools: DevTools
    session: string
  }) {
    this.#child = parts.child
    this.#profile = parts.profile
    this.#devTools = parts.devTools
    this.#session = parts.session
  }

  /** Opens a browser with one empty page, in which a script runs before those of each page it goes to. */
  static async open(script: string): Promise<BarePage> {
    const profile = mkdtempSync(join(tmpdir(), 'sandwire-bench-chromium-'))
    const child = Bun.spawn(
      [CHROMIUM, ...FLAGS, '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank'],
      { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
    )
    const socket = new WebSocket(await readAddress(child.stderr))
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', () => reject(new Error('Chromium cannot be driven')))
    })
    const devTools = new DevTools(socket)
    const { targetId } = await devTools.send('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await devTools.send('Target.attachToTarget', { targetId, flatten: true })
    const page = new BarePage({ child, profile, devTools, session: String(sessionId) })
    // Required for scripts that run before those of the page; reports nothing about the network.
    await page.#send('Page.enable')
    await page.#send('Page.addScriptToEvaluateOnNewDocument', { source: script })
    return page
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill()
    await this.#child.exited
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 })
  }

  async goto(url: string): Promise<void> {
    await this.#send('Page.navigate', { url })
  }

  /** Calls a function in the page; arguments and result are JSON. */
  async evaluate<T, A extends readonly unknown[]>(run: (...args: A) => T, ...args: A): Promise<Awaited<T>> {
    const { result, exceptionDetails } = await this.#send('Runtime.evaluate', {
      expression: `(${run.toString()})(...${JSON.stringify(args)})`,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return Reflect.get(Object(result), 'value') as Awaited<T>
  }

  /** Presses and releases the key of a letter. */
  async press(letter: string): Promise<void> {
    const key = { key: letter, code: `Key${letter.toUpperCase()}` }
    const keyCode = { windowsVirtualKeyCode: letter.toUpperCase().codePointAt(0) }
    await this.#send('Input.dispatchKeyEvent', { type: 'keyDown', text: letter, ...key, ...keyCode })
    await this.#send('Input.dispatchKeyEvent', { type: 'keyUp', ...key, ...keyCode })
  }

  #send(
    method: string,
    params?: Readonly<Record<string, unknown>>,
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#devTools.send(method, params, this.#session)
  }
}
