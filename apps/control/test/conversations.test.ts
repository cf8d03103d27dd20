import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually as poll } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { type FakeAgent, FakeAgents } from './support/fake-agents.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { upgrade, refusalOf } from './support/handshake.ts'
import { JWT_SECRET, signServiceToken } from './support/service-token.ts'

const PAGE = 'https://chat.example'

/** The machine may be loaded. */
const eventually: typeof poll = (look, options) =>
  poll(look, { timeoutMs: 20_000, intervalMs: 20, ...options })

type Frame = Readonly<Record<string, unknown>>

const sandboxes = new FakeSandboxes()
let agents = new FakeAgents()
let control: RunningControl
let api: ReturnType<typeof Bun.serve>
/** What the operator's API received, and how it answers. */
const posted: {
  readonly path: string
  readonly key: string
  readonly token: string
  readonly body: Frame
}[] = []
let apiStatus = 200

beforeAll(async () => {
  api = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request) => {
      posted.push({
        path: new URL(request.url).pathname,
        key: request.headers.get('idempotency-key') ?? '',
        token: request.headers.get('x-service-token') ?? '',
        body: (await request.json()) as Frame,
      })
      return Response.json({ messageId: 'm' }, { status: apiStatus })
    },
  })
  sandboxes.intercept = (request, server) => agents.handle(request, server)
  control = await startControl({
    runner: sandboxes,
    config: { conversationOrigins: [PAGE] },
    bindings: {
      ANTHROPIC_API_KEY: 'sk-ant-test',
      JWT_SECRET,
      API_BASE_URL: `http://127.0.0.1:${api.port}`,
      INTERNAL_API_TOKEN: 'internal',
    },
  })
  control.host.isolation = 'bubblewrap'
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
  await api.stop(true)
})
const open: Browser[] = []
afterEach(async () => {
  for (const browser of open.splice(0)) browser.close()
  const listed = (await (await control.fetch('/api/conversations')).json()) as {
    conversations: { id: string }[]
  }
  for (const { id } of listed.conversations)
    await control.fetch(`/api/conversations/${id}`, { method: 'DELETE' })
  agents = new FakeAgents()
  apiStatus = 200
  posted.length = 0
})

/** A page with a socket of a conversation. */
class Browser {
  readonly frames: Frame[] = []
  closed: number | undefined
  readonly #socket: WebSocket

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => this.frames.push(JSON.parse(String(data)) as Frame))
    socket.addEventListener('close', ({ code }) => (this.closed = code))
    open.push(this)
  }

  send(frame: Frame): void {
    this.#socket.send(JSON.stringify(frame))
  }

  close(): void {
    this.#socket.close()
  }

  types(): unknown[] {
    return this.frames.map(({ type }) => type)
  }

  ofType(type: string): Frame[] {
    return this.frames.filter((frame) => frame['type'] === type)
  }

  async waitFor(type: string, count = 1): Promise<Frame> {
    return eventually(async () => this.ofType(type)[count - 1] ?? false, {
      what: `frame ${count} of type ${type} in ${JSON.stringify(this.types())}`,
      intervalMs: 20,
    })
  }
}

function connect(query: string, headers: Record<string, string>): WebSocket {
  const all = { host: `localhost:${control.port}`, authorization: `Bearer ${TOKEN}`, ...headers }
  return new WebSocket(`ws://127.0.0.1:${control.port}/ws/v2?${query}`, {
    headers: all,
  } as unknown as string[])
}

async function browse(query: string, headers: Record<string, string> = {}): Promise<Browser> {
  const browser = new Browser(connect(query, headers))
  await browser.waitFor('connection_status')
  return browser
}

async function agentAt(index: number): Promise<FakeAgent> {
  return eventually(async () => [...agents.runs.values()][index] ?? false, {
    what: `agent ${index}`,
    intervalMs: 20,
  })
}

function textOf(frame: Frame): string {
  const { message } = frame['message'] as { message: { content: { text: string }[] } }
  return message.content.map(({ text }) => text).join('')
}

describe('a conversation', () => {
  test('starts an agent, shows it to every browser, hangs up when it rests, and goes on with it', async () => {
    const first = await browse('sessionId=s1')
    const second = await browse('sessionId=s1')
    first.send({ type: 'start', sessionId: 's1', systemPrompt: 'Be brief', content: 'Hello', id: 'm1' })
    expect(await first.waitFor('message_ack')).toMatchObject({ id: 'm1', seq: 1 })
    const agent = await agentAt(0)
    expect(agent.start).toMatchObject({
      task: 'Hello',
      systemPrompt: 'Be brief',
      isInteractive: true,
      permission: 'ask',
    })
    agent.begin('11111111-1111-4111-8111-111111111111')
    agent.emit({ type: 'text', text: 'Hi' })
    agent.emit({
      type: 'usage',
      turns: 1,
      inputTokens: 10,
      outputTokens: 5,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      costUsd: null,
    })
    agent.rest()
    for (const browser of [first, second]) {
      expect(await browser.waitFor('done')).toMatchObject({
        metadata: { tokensUsed: 15, stopReason: 'end_turn' },
      })
      expect(textOf(await browser.waitFor('sdk_message', 2))).toBe('Hi')
      expect(browser.ofType('user_message')).toMatchObject([{ content: 'Hello', by: 'local' }])
    }
    await eventually(async () => agent.viewers.size === 0, { what: 'control to hang up' })
    await first.waitFor('connection_status', 4)
    expect(first.ofType('connection_status').map(({ sandboxStatus }) => sandboxStatus)).toEqual([
      'disconnected',
      'connecting',
      'connected',
      'disconnected',
    ])
    expect(second.ofType('agent_status')).toMatchObject([{ status: 'pending' }])
    second.send({ type: 'message', content: 'More' })
    await eventually(async () => agent.messages.length === 1 && agent.viewers.size === 1, {
      what: 'the message',
    })
    expect(agent.messages).toMatchObject([{ text: 'More', by: 'local' }])
    agent.emit({ type: 'text', text: 'Done' })
    agent.rest()
    await first.waitFor('done', 2)
    expect(second.ofType('agent_status').length).toBe(2)
    // A browser that comes later sees everything, one that was there only what is new.
    const third = await browse('sessionId=s1')
    const stored = third.types().slice(1, third.types().indexOf('history_end'))
    expect(stored).toEqual([
      'user_message',
      'sdk_message',
      'sdk_message',
      'done',
      'user_message',
      'sdk_message',
      'done',
    ])
    expect(third.ofType('history_end')).toMatchObject([{ seq: 7 }])
    const later = await browse('sessionId=s1&after=6')
    expect(later.types()).toEqual([
      'connected',
      'done',
      'history_end',
      'conversation_state',
      'restore_points',
      'connection_status',
    ])
    await eventually(async () => posted.length === 4, { what: 'the messages at the API' })
    expect(
      posted.map(({ path, token, body: { role, type, content } }) => [path, token, role, type, content]),
    ).toEqual(
      [
        ['user', 'Hello'],
        ['assistant', 'Hi'],
        ['user', 'More'],
        ['assistant', 'Done'],
      ].map(([role, content]) => ['/internal/sessions/s1/messages', 'internal', role, 'message', content]),
    )
  })

  test('keeps no files, and says why, where the server does not save them', async () => {
    const browser = await browse('sessionId=unsaved')
    browser.send({ type: 'message', content: 'Hello', id: 'm1' })
    const agent = await agentAt(0)
    agent.begin('11111111-1111-4111-8111-111111111111')
    agent.rest()
    await browser.waitFor('done')
    const turns = [{ message: 'm1', version: null, problem: 'no_store' }]
    expect(browser.ofType('restore_points').at(-1)).toMatchObject({ turns, canUndo: false })
    const path = `/api/conversations/${String(browser.ofType('connected')[0]?.['conversationId'])}`
    expect(await (await control.fetch(`${path}/restore-points`)).json()).toMatchObject({ turns })
    for (const json of [{ message: 'm1' }, { message: 'unknown' }]) {
      const refused = await control.fetch(`${path}/restore`, { method: 'POST', json })
      expect([refused.status, await refused.json()]).toMatchObject([404, { error: { code: 'not_found' } }])
    }
    for (const json of [{}, { undo: false }, { message: 'm1', undo: true }])
      expect((await control.fetch(`${path}/restore`, { method: 'POST', json })).status).toBe(400)
  })

  test('stores a message once, and gives the agent what it missed after control was killed', async () => {
    const before = await browse('sessionId=s2')
    before.send({ type: 'message', content: 'Hello', id: 'm1' })
    before.send({ type: 'message', content: 'Hello', id: 'm1' })
    await before.waitFor('message_ack', 2)
    const agent = await agentAt(0)
    agent.begin('11111111-1111-4111-8111-111111111111')
    agent.emit({ type: 'text', text: 'One' })
    await before.waitFor('sdk_message', 2)
    await control.restart({ conversationOrigins: [PAGE] })
    agent.emit({ type: 'text', text: 'Two' })
    agent.rest()
    const after = await browse('sessionId=s2')
    await after.waitFor('done')
    expect(after.ofType('user_message').length).toBe(1)
    expect(after.ofType('sdk_message').slice(1).map(textOf)).toEqual(['One', 'Two'])
    await eventually(async () => posted.some(({ body }) => body['content'] === 'One\n\nTwo'), {
      what: 'the whole turn',
    })
  })

  test('takes the first answer to a request, from anyone who may', async () => {
    const [one, other] = [await browse('sessionId=s3'), await browse('sessionId=s3')]
    one.send({ type: 'message', content: 'x' })
    const agent = await agentAt(0)
    agent.begin('11111111-1111-4111-8111-111111111111')
    agent.ask('r1')
    for (const browser of [one, other])
      expect(await browser.waitFor('tool_permission_request')).toMatchObject({ requestId: 'r1' })
    one.send({ type: 'permission_response', requestId: 'r1', decision: 'allow' })
    other.send({ type: 'permission_response', requestId: 'r1', decision: 'deny' })
    const [refused] = await eventually(
      async () => {
        const errors = [...one.ofType('error'), ...other.ofType('error')]
        return errors.length > 0 && errors
      },
      { what: 'the refusal' },
    )
    expect(refused).toMatchObject({ code: 'conflict' })
    await eventually(async () => agent.answered !== undefined, { what: 'the answer' })
    expect(one.ofType('request_resolved')).toMatchObject([
      { requestId: 'r1', outcome: agent.answered?.decision },
    ])
  })

  test('starts a new program, which continues the conversation, when the old one has ended', async () => {
    const browser = await browse('sessionId=s4')
    browser.send({ type: 'message', content: 'x' })
    const agent = await agentAt(0)
    agent.begin('11111111-1111-4111-8111-111111111111')
    agent.rest()
    await browser.waitFor('done')
    await eventually(async () => agent.viewers.size === 0, { what: 'control to hang up' })
    agent.end()
    browser.send({ type: 'message', content: 'y' })
    const next = await eventually(
      async () => [...agents.runs.values()].find((each) => each !== agent) ?? false,
      {
        what: 'the next program',
      },
    )
    expect(next.start).toMatchObject({ task: 'y', resume: '11111111-1111-4111-8111-111111111111' })
    // It cannot: the message goes to a new conversation of the agent.
    next.end('failed')
    await eventually(
      async () => browser.ofType('session_status').some(({ status }) => status === 'restore_failed'),
      {
        what: 'the status',
      },
    )
    const last = await eventually(
      async () => [...agents.runs.values()].find((each) => each !== agent && each !== next) ?? false,
      { what: 'the last program' },
    )
    expect(last.start['task']).toBe('y')
    expect(last.start).not.toHaveProperty('resume')
  })

  test('refuses what does not fit into the queue, and frames that come faster than people type', async () => {
    const browser = await browse('sessionId=s6')
    for (let at = 0; at < 220; at += 1) browser.send({ type: 'message', content: `m${at}`, id: `m${at}` })
    await eventually(
      async () => browser.ofType('message_ack').length + browser.ofType('error').length === 220,
      {
        what: 'every frame to be answered',
      },
    )
    const codes = browser.ofType('error').map(({ code }) => code)
    expect(new Set(codes)).toEqual(new Set(['rate_limited']))
    // A refusal names the message.
    expect(browser.ofType('error').filter(({ id }) => id === undefined)).toEqual([])
    // The first one started the agent, which has not begun, so that the others wait.
    expect([100, 101]).toContain(browser.ofType('message_ack').length)
    expect(browser.ofType('user_message').length).toBe(browser.ofType('message_ack').length)
  })

  test('keeps what the API does not accept, in order and with the same keys', async () => {
    apiStatus = 503
    const browser = await browse('sessionId=s5')
    browser.send({ type: 'message', content: 'x' })
    const agent = await agentAt(0)
    agent.begin('11111111-1111-4111-8111-111111111111')
    agent.emit({ type: 'text', text: 'z' })
    agent.rest()
    await browser.waitFor('done')
    await eventually(async () => posted.length >= 3, { what: 'three quick attempts' })
    expect(new Set(posted.map(({ key }) => key)).size).toBe(1)
    apiStatus = 200
    await eventually(async () => posted.at(-1)?.body['content'] === 'z', {
      what: 'the second message',
    })
    expect(posted.filter(({ body }) => body['content'] === 'z').length).toBe(1)
  })
})

describe('access', () => {
  test('another account has conversations of its own, and none of this one', async () => {
    const mine = await browse('sessionId=shared')
    const id = String(mine.frames[0]?.['conversationId'])
    const token = signServiceToken({ userId: 'u2', email: 'u2@example.com' })
    const theirs = await browse('sessionId=shared', { authorization: `Bearer ${token}` })
    expect(theirs.frames[0]?.['conversationId']).not.toBe(id)
    const headers = { authorization: `Bearer ${token}` }
    expect((await control.fetch(`/api/conversations/${id}`, { headers })).status).toBe(404)
    const stranger = new Browser(connect(`sessionId=${id}`, headers))
    expect(await stranger.waitFor('error')).toMatchObject({ code: 'not_found' })
    await control.fetch(`/api/conversations/${String(theirs.frames[0]?.['conversationId'])}`, {
      method: 'DELETE',
      headers,
    })
  })

  test('a cookie of a service opens a conversation from listed pages only', async () => {
    const token = signServiceToken({ userId: 'u3', email: 'u3@example.com' })
    const cookie = ['Cookie', `session=${token}`] as const
    const listed = await upgrade(control, '/ws/v2?sessionId=c1', { headers: [cookie, ['Origin', PAGE]] })
    expect(listed.kind).toBe('open')
    for (const headers of [[cookie], [cookie, ['Origin', 'https://evil.example']]] as const)
      expect(refusalOf(await upgrade(control, '/ws/v2?sessionId=c1', { headers: [...headers] }))).toBe(
        '403 origin_refused',
      )
    // It is no credential anywhere else.
    const other = await control.fetch('/api/conversations', {
      headers: { authorization: '', cookie: `session=${token}` },
    })
    expect(other.status).toBe(401)
  })

  test('listed pages may call the routes of conversations, and no others', async () => {
    const preflight = { origin: PAGE, 'access-control-request-method': 'POST' }
    const allowed = await control.fetch('/api/conversations', { method: 'OPTIONS', headers: preflight })
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([204, PAGE])
    const listed = await control.fetch('/api/conversations', { headers: { origin: PAGE } })
    expect([listed.status, listed.headers.get('access-control-allow-origin')]).toEqual([200, PAGE])
    expect(listed.headers.get('access-control-allow-credentials')).toBeNull()
    expect((await control.fetch('/api/sandboxes', { headers: { origin: PAGE } })).status).toBe(403)
    const evil = await control.fetch('/api/conversations', {
      method: 'OPTIONS',
      headers: { ...preflight, origin: 'https://evil.example' },
    })
    expect([evil.status, evil.headers.get('access-control-allow-origin')]).toEqual([403, null])
  })
})

test('conversations are created, listed, read and deleted over HTTP', async () => {
  const unknown = await control.fetch('/api/conversations', { method: 'POST', json: { agent: 'other' } })
  expect(await unknown.json()).toMatchObject({ error: { code: 'bad_request', field: 'agent' } })
  const made = await control.fetch('/api/conversations', {
    method: 'POST',
    json: { sessionId: 'h1', permission: 'auto' },
  })
  expect(made.status).toBe(201)
  const { id, state, permission } = (await made.json()) as { id: string; state: string; permission: string }
  expect([state, permission]).toEqual(['new', 'auto'])
  const sent = await control.fetch(`/api/conversations/${id}/messages`, {
    method: 'POST',
    json: { text: 'Hello', id: 'm1' },
  })
  expect([sent.status, await sent.json()]).toEqual([202, { id: 'm1', seq: 1 }])
  const agent = await agentAt(0)
  agent.begin('11111111-1111-4111-8111-111111111111')
  agent.emit({ type: 'text', text: 'Hi' })
  agent.rest()
  await eventually(
    async () => {
      const { conversations } = (await (await control.fetch('/api/conversations')).json()) as {
        conversations: { id: string; state: string; title: string }[]
      }
      return conversations.some((each) => each.id === id && each.state === 'idle' && each.title === 'Hello')
    },
    { what: 'the list to show it' },
  )
  const entries = (await (
    await control.fetch(`/api/conversations/${id}/entries?after=1&limit=2`)
  ).json()) as {
    entries: { seq: number; frame: Frame }[]
    lastSeq: number
  }
  expect([entries.entries.map(({ seq }) => seq), entries.lastSeq]).toEqual([[2, 3], 4])
  const { sandbox } = (await (await control.fetch(`/api/conversations/${id}`)).json()) as { sandbox: string }
  expect((await control.fetch(`/api/conversations/${id}`, { method: 'DELETE' })).status).toBe(204)
  expect((await control.fetch(`/api/conversations/${id}`)).status).toBe(404)
  expect((await control.fetch(`/api/sandboxes/${sandbox}`)).status).toBe(404)
})
