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
  sandboxes.intercept = (request, server) => agents.handle(request, server)
  control = await startControl({
    runner: sandboxes,
    config: { runs: { concurrent: 1, kept: 2 } },
    bindings: { JWT_SECRET, ANTHROPIC_API_KEY: 'sk-ant-test' },
  })
  control.host.isolation = 'bubblewrap'
  ada = await ApiClient.named(control, 'ada')
  bob = await ApiClient.named(control, 'bob')
  sandbox = textIn(await ada.post('/api/sandboxes', {}), 'id')
})
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

test('(threat T6) who lost access to a sandbox neither steers nor watches an agent that they started there', async () => {
  const { body } = await ada.post('/api/grants', { sandbox, role: 'collaborator' })
  await bob.post('/api/grants/redeem', { link: String(fieldOf(body, 'link')).split('#')[1] })
  const run = textIn(await bob.post('/api/runs', { sandbox, task: 'x', interactive: true }), 'id')
  const agent = await eventually(() => agents.runs.get(run), { what: 'the agent' })
  const conversation = textIn(await bob.post('/api/conversations', { sandbox }), 'id')
  const paths = [
    `/api/runs/${run}`,
    `/api/runs/${run}/events`,
    `/api/conversations/${conversation}`,
    `/api/conversations/${conversation}/entries`,
  ]
  const messages = [`/api/runs/${run}/messages`, `/api/conversations/${conversation}/messages`]
  const statuses = async (client: ApiClient): Promise<readonly number[]> => {
    const read = paths.map((path) => client.get(path))
    const sent = messages.map((path) => client.post(path, { text: 'y' }))
    return (await Promise.all([...read, ...sent])).map(({ status }) => status)
  }
  await eventually(async () => (await statuses(bob)).every((status) => status < 300), { what: 'access' })
  // The first message to a conversation starts its agent.
  await eventually(() => agents.runs.size === 2, { what: 'both agents' })
  const sent = agent.messages.length
  await ada.delete(`/api/grants/${String(fieldOf(body, 'grant'))}`)
  expect(new Set(await statuses(bob))).toEqual(new Set([404]))
  expect(agent.messages.length).toBe(sent)
  // The owner of the sandbox still has both, and the agents end without them.
  expect((await ada.get(`/api/runs/${run}`)).status).toBe(200)
  const both = [...agents.runs.values()]
  expect(both).toHaveLength(2)
  await eventually(() => both.every(({ state }) => state === 'ended'), {
    what: 'the agents to end',
  })
  expect((await bob.delete(`/api/conversations/${conversation}`)).status).toBe(204)
})

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

test('(threat T50) an account has a limited number of streams of a run, and takes none of others', async () => {
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
  const { body } = await ada.post('/api/grants', { sandbox, role: 'viewer' })
  const dave = await ApiClient.named(control, 'dave')
  await dave.post('/api/grants/redeem', { link: String(fieldOf(body, 'link')).split('#')[1] })
  const other = { accept: 'text/event-stream', authorization: `Bearer ${dave.bearer ?? ''}` }
  expect((await control.fetch(path, { headers: other, signal: ended.signal })).status).toBe(200)
  ended.abort()
})

test('(threat T50) an account keeps a limited number of ended runs', async () => {
  const carol = await ApiClient.named(control, 'carol')
  const own = textIn(await carol.post('/api/sandboxes', {}), 'id')
  const ids: string[] = []
  const states = async (): Promise<readonly string[]> => {
    const { body } = await carol.get('/api/runs')
    return (fieldOf(body, 'runs') as { readonly id: string; readonly state: string }[])
      .map(({ id, state }) => `${ids.indexOf(id)} ${state}`)
      .toReversed()
  }
  for (let at = 0; at < 4; at += 1) {
    const id = textIn(await carol.post('/api/runs', { sandbox: own, task: 'x' }), 'id')
    ids.push(id)
    const agent = await eventually(() => agents.runs.get(id), { what: 'the agent' })
    agent.end()
    await eventually(async () => (await states()).includes(`${at} ended`), {
      what: 'the run to end',
    })
  }
  await eventually(async () => (await states()).join() === '2 ended,3 ended', {
    what: 'the oldest runs to be deleted',
  })
  expect((await carol.get(`/api/runs/${ids[0] ?? ''}`)).status).toBe(404)
  const { body } = await carol.get('/api/account/usage')
  expect(Number(fieldOf(fieldOf(fieldOf(body, 'account'), 'storedBytes'), 'used'))).toBeGreaterThan(1_000)
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
