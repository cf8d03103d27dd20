import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { ApiClient, codeIn, JWT_SECRET, textIn } from '../support/api-client.ts'
import { type RunningControl, startControl } from '../support/control.ts'
import { FakeAgents } from '../support/fake-agents.ts'
import { FakeSandboxes } from '../support/fake-sandboxes.ts'
import { fieldOf } from '../support/json.ts'

/** Streams of one run that may be open. */
const MAX_WATCHERS = 64

const sandboxes = new FakeSandboxes()
const agents = new FakeAgents()
let control: RunningControl
let ada: ApiClient
let bob: ApiClient
let sandbox: string

beforeAll(async () => {
  sandboxes.intercept = (request) => agents.handle(request) as Promise<Response>
  control = await startControl({
    runner: sandboxes,
    config: { runs: { concurrent: 1 } },
    bindings: { JWT_SECRET, ANTHROPIC_API_KEY: 'sk-ant-test' },
  })
  control.host.isolation = 'bubblewrap'
  ada = await ApiClient.named(control, 'ada')
  bob = await ApiClient.named(control, 'bob')
  sandbox = textIn(await ada.post('/api/sandboxes', {}), 'id')
}, 60_000)
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

async function create(): Promise<string> {
  return textIn(await ada.post('/api/runs', { sandbox, task: 'x' }), 'id')
}

/** Opens the terminal of a run; `close` resolves to the close code. */
async function openTerminal(
  run: string,
  { bearer = '' }: ApiClient,
): Promise<{ readonly socket: WebSocket; readonly close: Promise<number> }> {
  // Bun's constructor accepts headers, which the DOM types do not declare.
  const options: unknown = {
    headers: { authorization: `Bearer ${bearer}`, host: `localhost:${control.port}` },
  }
  const socket = new WebSocket(`ws://127.0.0.1:${control.port}/terminal/${run}`, options as string[])
  const { promise: close, resolve } = Promise.withResolvers<number>()
  socket.addEventListener('close', ({ code }) => resolve(code))
  const opened = Promise.withResolvers<void>()
  socket.addEventListener('open', () => opened.resolve())
  await Promise.race([opened.promise, close])
  return { socket, close }
}

test('(threat T50) a terminal of a run that gets more input than anyone types is closed', async () => {
  const run = await create()
  for (const input of ['x\r'.repeat(201), 'x'.repeat(129 * 1024)]) {
    const { socket, close } = await openTerminal(run, ada)
    socket.send(input)
    // rate_limited
    expect(await close).toBe(4452)
  }
  expect(agents.runs.get(run)?.messages ?? []).toEqual([])
})

test('(threat T50) a run has a limited number of streams', async () => {
  await create()
  const waiting = await create()
  const path = `/api/runs/${waiting}/events`
  const ended = new AbortController()
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${ada.bearer ?? ''}` }
  const open = (): Promise<Response> => control.fetch(path, { headers, signal: ended.signal })
  const streams = await Promise.all(Array.from({ length: MAX_WATCHERS }, open))
  expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([200]))
  const refused = await open()
  expect(codeIn({ status: refused.status, body: await refused.json(), headers: refused.headers })).toBe(
    '429 too_many_attachments',
  )
  ended.abort()
})

test('a terminal of a run is closed when the grant of its viewer is revoked', async () => {
  const run = await create()
  const { body } = await ada.post('/api/grants', { sandbox, role: 'viewer' })
  await bob.post('/api/grants/redeem', { link: String(fieldOf(body, 'link')).split('#')[1] })
  const { socket, close } = await openTerminal(run, bob)
  await eventually(() => socket.readyState === WebSocket.OPEN, { what: 'the terminal to open' })
  await ada.delete(`/api/grants/${String(fieldOf(body, 'grant'))}`)
  // revoked
  expect(await close).toBe(4435)
})
