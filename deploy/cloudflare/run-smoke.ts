import { withTimeout } from '@sandwire/async'
import { attach, openWebSocket, type OpenSocket } from '@sandwire/client'
import { SandwireError } from '@sandwire/protocol'

export interface SmokeOptions {
  /** Address of the deployment, without a path. */
  readonly url: string
  /** A bearer token with all rights on its own sandboxes. */
  readonly token: string
  /** Takes one line per step. */
  readonly report: (line: string) => void
}

/** A first start pulls the image. */
const START_MS = 120_000
const ANSWER_MS = 30_000
/** Bytes that must arrive unchanged: every value, unterminated lines and invalid UTF-8. */
const ALL_BYTES = Uint8Array.from({ length: 256 * 64 }, (_, index) => (index * 7 + (index >> 8)) & 255)
/** Close code of the disconnect made by the smoke test. */
const DISCONNECT_CODE = 4000

/** Rejects when a promise takes too long. */
function withinAnswerTime<T>(promise: Promise<T>): Promise<T> {
  return withTimeout(promise, ANSWER_MS, () => new Error(`no response within ${ANSWER_MS / 1000} s`))
}

/** Sends an API request; throws with the response body when it is an error. */
async function ask(
  { url, token }: SmokeOptions,
  request: { readonly method?: string; readonly path: string; readonly body?: unknown; readonly ms?: number },
): Promise<unknown> {
  const { method = 'GET', path, body, ms = ANSWER_MS } = request
  const response = await fetch(new URL(path, url), {
    method,
    redirect: 'error',
    signal: AbortSignal.timeout(ms),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} returned ${response.status} ${text.slice(0, 300)}`)
  return text === '' ? undefined : JSON.parse(text)
}

function expectFields(value: unknown, fields: Readonly<Record<string, unknown>>): void {
  for (const [key, wanted] of Object.entries(fields)) {
    const got: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
    if (!Bun.deepEquals(got, wanted))
      throw new Error(`${key} is ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`)
  }
}

/** An attachment to `cat` that records the output and can be disconnected. */
function openEcho({ url, token }: SmokeOptions, sandbox: string) {
  const chunks: Uint8Array[] = []
  let disconnect = (): void => undefined
  let reconnections = 0
  const openSocket: OpenSocket = (request, events) => {
    const socket = openWebSocket(request, events)
    disconnect = () => socket.close(DISCONNECT_CODE, '')
    return socket
  }
  const handle = attach({
    url,
    request: { sandbox, create: false, cmd: 'cat', mode: 'pipe', keepSeconds: 60 },
    credentials: async () => ({ headers: { authorization: `Bearer ${token}` } }),
    connectForMs: ANSWER_MS,
    retryForMs: ANSWER_MS,
    openSocket,
    onOutput: (stream, bytes) => {
      if (stream === 'stdout') chunks.push(bytes)
    },
  })
  handle.status.subscribe(({ kind }) => {
    if (kind === 'reconnecting') reconnections++
  })
  return {
    handle,
    received: () => Buffer.concat(chunks),
    disconnect: () => disconnect(),
    reconnections: () => reconnections,
  }
}

type Echo = ReturnType<typeof openEcho>

/** Waits until this many bytes were echoed; throws when the attachment ends. */
async function received({ handle, received: bytes }: Echo, count: number): Promise<void> {
  const isThere = async (): Promise<void> => {
    while (bytes().byteLength < count) {
      const status = handle.status.get()
      if (status.kind === 'failed') throw status.error
      if (status.kind === 'exited') throw new Error(`the process ended after ${bytes().byteLength} bytes`)
      await Bun.sleep(20)
    }
  }
  await withinAnswerTime(isThere())
}

/** Echoes bytes over a WebSocket across a disconnect: none is lost, duplicated or changed. */
async function tryEcho(options: SmokeOptions, sandbox: string): Promise<string> {
  const echo = openEcho(options, sandbox)
  try {
    const half = ALL_BYTES.byteLength / 2
    await withinAnswerTime(echo.handle.write(ALL_BYTES.subarray(0, half)))
    await received(echo, half)
    echo.disconnect()
    await withinAnswerTime(echo.handle.write(ALL_BYTES.subarray(half)))
    await received(echo, ALL_BYTES.byteLength)
    echo.handle.eof()
    const exit = await withinAnswerTime(echo.handle.exit)
    expectFields(exit, { code: 0 })
    if (!Bun.deepEquals(new Uint8Array(echo.received()), ALL_BYTES))
      throw new Error('the echoed bytes differ')
    if (echo.reconnections() === 0) throw new Error('the client did not reconnect')
    return `${ALL_BYTES.byteLength} bytes echoed across a disconnect`
  } finally {
    echo.handle.detach()
  }
}

/** Runs a command to its end. It writes unterminated lines to both streams and has a distinctive exit code. */
async function tryExec(options: SmokeOptions, path: string): Promise<string> {
  const script = "printf 'a\\tb'; printf '\\303\\244\\r\\n' >&2; exit 7"
  const body = { cmd: 'sh', args: ['-c', script] }
  const result = await ask(options, { method: 'POST', path: `${path}/exec`, body, ms: 2 * ANSWER_MS })
  expectFields(result, { exit: { code: 7, signal: null }, output: 'a\tbä\r\n', isCut: false })
  return 'exact output and exit 7'
}

async function askPage({ url }: SmokeOptions, path: string): Promise<{ text: string; headers: Headers }> {
  const response = await fetch(new URL(path, url), {
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`GET ${path} returned ${response.status} ${text.slice(0, 300)}`)
  return { text, headers: response.headers }
}

/** Fetches the page without signing in, and its script. */
async function tryPage(options: SmokeOptions): Promise<string> {
  const page = await askPage(options, '/')
  const path = /<script[^>]+src="(\/assets\/[\w.-]+\.js)"/.exec(page.text)?.[1]
  if (path === undefined) throw new Error('GET / is not the workbench')
  if (!page.headers.get('content-security-policy')?.includes("script-src 'self'"))
    throw new Error('GET / has no content security policy')
  const { text, headers } = await askPage(options, path)
  const type = headers.get('content-type') ?? 'none'
  if (!type.startsWith('text/javascript')) throw new Error(`GET ${path} is of type ${type}`)
  return `the workbench, and ${text.length} characters of its program`
}

/** Tests a deployment through its public address; throws at the first failure. */
export async function runSmoke(options: SmokeOptions): Promise<void> {
  const name = `smoke-${crypto.randomUUID().slice(0, 8)}`
  const path = `/api/sandboxes/${name}`
  const step = async (title: string, run: () => Promise<string | void>): Promise<void> => {
    const startedMs = performance.now()
    try {
      const detail = await run()
      const elapsed = `${Math.round(performance.now() - startedMs)} ms`
      options.report(`ok    ${title.padEnd(9)} ${elapsed.padStart(8)}  ${detail ?? ''}`.trimEnd())
    } catch (error) {
      const { message } =
        error instanceof SandwireError || error instanceof Error ? error : new Error(String(error))
      options.report(`FAIL  ${title.padEnd(9)} ${message}`)
      throw new Error(`The smoke test of ${options.url} failed at ${title}: ${message}`, { cause: error })
    }
  }
  await step('healthz', async () => expectFields(await ask(options, { path: '/healthz' }), { status: 'ok' }))
  await step('readyz', async () => expectFields(await ask(options, { path: '/readyz' }), { status: 'ok' }))
  await step('page', () => tryPage(options))
  try {
    await step('create', async () => {
      const made = await ask(options, {
        method: 'POST',
        path: '/api/sandboxes',
        body: { name },
        ms: START_MS,
      })
      expectFields(made, { name, state: 'running' })
    })
    await step('exec', () => tryExec(options, path))
    await step('attach', () => tryEcho(options, name))
    await step('stop', async () => {
      const stopped = await ask(options, { method: 'POST', path: `${path}/stop?discard=1`, ms: START_MS })
      expectFields(stopped, { state: 'stopped' })
    })
  } catch (error) {
    // A leftover sandbox would cost money; one that did not start yet may still do so.
    await ask(options, { method: 'DELETE', path }).catch(() => undefined)
    throw error
  }
  await step('destroy', async () => void (await ask(options, { method: 'DELETE', path, ms: START_MS })))
}
