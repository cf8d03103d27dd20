import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { eventually } from '@sandwire/testing'
import { ApiClient, codeIn, JWT_SECRET, linkIn, textIn } from '../support/api-client.ts'
import { type RunningControl, startControl } from '../support/control.ts'
import { type FakeAgent, FakeAgents } from '../support/fake-agents.ts'
import { FakeSandboxes } from '../support/fake-sandboxes.ts'

type Frame = Readonly<Record<string, unknown>>

/** Sockets that an account may have in a conversation. */
const MAX_ACCOUNT_SOCKETS = 32
/** What an account may store; a conversation keeps 8 MiB. */
const MAX_STORED_BYTES = 20 * 1024 * 1024
const TEXT = 'x'.repeat(200 * 1024)

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
    config: { ceilings: { account: { storedBytes: MAX_STORED_BYTES } } },
    bindings: { JWT_SECRET, ANTHROPIC_API_KEY: 'sk-ant-test' },
  })
  control.host.isolation = 'bubblewrap'
  ada = await ApiClient.named(control, 'ada')
  bob = await ApiClient.named(control, 'bob')
  sandbox = textIn(await ada.post('/api/sandboxes', {}), 'id')
  const link = linkIn(await ada.post('/api/grants', { sandbox, role: 'viewer' }))
  await bob.post('/api/grants/redeem', { link })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

async function create(client = ada): Promise<string> {
  return textIn(await client.post('/api/conversations', client === ada ? { sandbox } : {}), 'id')
}

/** A client that reads. */
class Browser implements Disposable {
  readonly frames: Frame[] = []
  closed: number | undefined
  readonly socket: WebSocket

  constructor({ bearer = '' }: ApiClient, query: string) {
    // Bun's constructor accepts headers, which the DOM types do not declare.
    const options: unknown = {
      headers: { authorization: `Bearer ${bearer}`, host: `localhost:${control.port}` },
    }
    this.socket = new WebSocket(`ws://127.0.0.1:${control.port}/ws/v2?${query}`, options as string[])
    this.socket.addEventListener('message', ({ data }) => this.frames.push(JSON.parse(String(data)) as Frame))
    this.socket.addEventListener('close', ({ code }) => (this.closed = code))
  }

  /** Error codes that it was sent, and whether it was told of the end of the history. */
  get outcome(): readonly unknown[] {
    return this.frames.flatMap(({ type, code }) =>
      type === 'error' ? [code] : type === 'history_end' ? [type] : [],
    )
  }

  /** Resolves when it is open or refused. */
  async settled(): Promise<this> {
    await eventually(() => this.outcome.length > 0 || this.closed !== undefined, { what: 'the socket' })
    return this
  }

  [Symbol.dispose](): void {
    this.socket.close()
  }
}

/** A client that reads nothing after the beginning of the first answer. */
async function stall(
  { bearer = '' }: ApiClient,
  conversation: string,
): Promise<Disposable & { readonly socket: Socket }> {
  const socket = connect(control.port, '127.0.0.1')
  socket.on('error', () => undefined)
  const { promise: answered, resolve } = Promise.withResolvers<void>()
  socket.once('data', () => {
    socket.pause()
    resolve()
  })
  socket.write(
    `GET /ws/v2?sessionId=${conversation} HTTP/1.1\r\nHost: localhost:${control.port}\r\nAuthorization: Bearer ${bearer}\r\n` +
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await answered
  return { socket, [Symbol.dispose]: () => socket.destroy() }
}

/** The agent of a conversation, after its first message. */
async function startAgent(conversation: string, client = ada): Promise<FakeAgent> {
  await client.post(`/api/conversations/${conversation}/messages`, { text: 'begin' })
  return eventually(() => [...agents.runs.values()].find(({ run }) => run.startsWith(conversation)), {
    what: 'the agent',
  })
}

async function lastSeqOf(conversation: string, client = ada): Promise<number> {
  const { body } = await client.get(`/api/conversations/${conversation}/entries?limit=1`)
  return Number((body as Frame)['lastSeq'])
}

describe('(threat T50) an account that', () => {
  test('sends more frames than people do is refused in all its conversations, and disconnected', async () => {
    const [first, second] = [await create(), await create()]
    const eve = await new Browser(bob, `sessionId=${first}`).settled()
    for (let at = 0; at < 400; at += 1) eve.socket.send('{"type":"interrupt"}')
    await eventually(() => eve.closed, { what: 'the socket to be closed' })
    // rate_limited
    expect(eve.closed).toBe(4452)
    expect(new Set(eve.outcome)).toEqual(new Set(['history_end', 'forbidden', 'rate_limited']))
    using other = await new Browser(bob, `sessionId=${second}`).settled()
    // Some may be accepted again.
    for (let at = 0; at < 250; at += 1) other.socket.send('not a frame')
    await eventually(() => other.closed === 4452 || other.outcome.includes('rate_limited'), {
      what: 'a refusal',
    })
    using owner = await new Browser(ada, `sessionId=${second}`).settled()
    owner.socket.send('not a frame')
    await eventually(() => owner.outcome.includes('bad_request'), { what: 'an answer' })
  })

  test('opens all sockets that it may leaves some for others', async () => {
    const conversation = await create()
    const open = (client: ApiClient) => new Browser(client, `sessionId=${conversation}`).settled()
    using sockets = new DisposableStack()
    for (let at = 0; at < MAX_ACCOUNT_SOCKETS; at += 1)
      expect(sockets.use(await open(bob)).outcome).toEqual(['history_end'])
    expect(sockets.use(await open(bob)).outcome).toEqual(['too_many_attachments'])
    expect(sockets.use(await open(ada)).outcome).toEqual(['history_end'])
  })

  test('sends more than may wait is refused', async () => {
    const conversation = await create()
    await startAgent(conversation)
    using browser = await new Browser(ada, `sessionId=${conversation}`).settled()
    const frame = JSON.stringify({ type: 'message', content: 'x'.repeat(60_000), whenIdle: true })
    for (let at = 0; at < 8; at += 1) browser.socket.send(frame)
    await eventually(() => browser.outcome.length === 5, { what: 'the answers' })
    expect(browser.outcome).toEqual(['history_end', ...Array.from({ length: 4 }, () => 'rate_limited')])
  })

  test('stores all it may is refused, until it deletes a conversation', async () => {
    const eve = await ApiClient.named(control, 'eve')
    const full: string[] = []
    const codes: string[] = []
    while (codes.length === 0 && full.length < 8) {
      const conversation = await create(eve)
      full.push(conversation)
      const agent = await startAgent(conversation, eve)
      for (let at = 0; at < 50; at += 1) agent.emit({ type: 'text', text: `${at} ${TEXT}` })
      await eventually(async () => (await lastSeqOf(conversation, eve)) > 50, { what: 'the entries' })
      const { body } = await eve.get(`/api/conversations/${conversation}/entries?limit=1`)
      // The oldest were deleted.
      expect(Number((body as { entries: Frame[] }).entries[0]?.['seq'])).toBeGreaterThan(5)
      const response = await eve.post(`/api/conversations/${conversation}/messages`, { text: 'more' })
      if (response.status !== 202) codes.push(codeIn(response))
    }
    expect(codes).toEqual(['429 ceiling_exceeded'])
    for (const conversation of full) await eve.delete(`/api/conversations/${conversation}`)
    const conversation = await create(eve)
    const response = await eve.post(`/api/conversations/${conversation}/messages`, { text: 'again' })
    expect(response.status).toBe(202)
  })

  test('reads nothing makes control keep a limited amount, and others still get everything', async () => {
    const conversation = await create()
    const agent = await startAgent(conversation)
    for (let at = 0; at < 30; at += 1) agent.emit({ type: 'text', text: `${at} ${TEXT}` })
    await eventually(async () => (await lastSeqOf(conversation)) > 30, { what: 'the entries' })
    using sockets = new DisposableStack()
    const stalled: Socket[] = []
    let refused: Browser | undefined
    while (refused === undefined && stalled.length < 20) {
      stalled.push(sockets.use(await stall(bob, conversation)).socket)
      using probe = await new Browser(bob, `sessionId=${conversation}&after=1000`).settled()
      if (probe.outcome.includes('too_many_attachments')) refused = probe
    }
    expect(refused?.outcome).toEqual(['too_many_attachments'])
    using owner = await new Browser(ada, `sessionId=${conversation}`).settled()
    expect(owner.frames.filter(({ type }) => type === 'sdk_message')).toHaveLength(30)
    for (const socket of stalled) socket.destroy()
    await eventually(
      async () => {
        using again = await new Browser(bob, `sessionId=${conversation}`).settled()
        return again.outcome.includes('history_end')
      },
      { what: 'another socket' },
    )
  })
})

test('(threat T50) a socket that was sent much is closed, and a new one goes on with the next entry', async () => {
  const conversation = await create()
  const agent = await startAgent(conversation)
  const seen: number[] = []
  let closings = 0
  const follow = async (): Promise<void> => {
    using browser = await new Browser(ada, `sessionId=${conversation}&after=${seen.length}`).settled()
    // Bun waits for the end of the connection before it says that it is closed.
    const isClosing = (): boolean => browser.socket.readyState !== WebSocket.OPEN
    for (let taken = 0; seen.length < 101 && !(isClosing() && browser.frames.length === taken);) {
      await eventually(() => browser.frames.length > taken || isClosing(), { what: 'frames' })
      const added = browser.frames.slice(taken)
      taken += added.length
      for (const { seq, atMs } of added) if (atMs !== undefined) seen.push(Number(seq))
    }
    if (isClosing()) closings += 1
  }
  const emit = async (): Promise<void> => {
    for (let at = 0; at < 100; at += 1) {
      agent.emit({ type: 'text', text: `${at} ${TEXT}` })
      await eventually(() => seen.length > at - 10, { what: 'the reader' })
    }
  }
  const emitted = emit()
  while (seen.length < 101) await follow()
  await emitted
  expect(closings).toBe(1)
  expect(seen).toEqual(Array.from({ length: 101 }, (_, at) => at + 1))
})
