import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, PtyClient } from '@sandwire/testing'
import { parseClaudeQuery } from '../src/compat/claude-query.ts'
import { ApiClient, JWT_SECRET, textIn, UNLIMITED } from './support/api-client.ts'
import { type RunningControl, startControl } from './support/control.ts'
import { type FakeAgent, FakeAgents } from './support/fake-agents.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { shareWith } from './support/sharing.ts'

const SESSION_TOKEN_SECRET = `k1:${Buffer.alloc(32, 7).toString('base64')}`
const TIMEOUT_MS = 180_000
const WAIT = { intervalMs: 20 }

const sandboxes = new FakeSandboxes()
let agents = new FakeAgents()
let control: RunningControl
let ada: ApiClient
let bob: ApiClient
let sandbox: string

beforeAll(async () => {
  sandboxes.intercept = (request, server) => agents.handle(request, server)
  control = await startControl({
    runner: sandboxes,
    config: { limits: UNLIMITED, runs: { models: ['claude-*'], concurrent: 50 } },
    bindings: { JWT_SECRET, SESSION_TOKEN_SECRET, ANTHROPIC_API_KEY: 'sk-ant-test' },
  })
  control.host.isolation = 'bubblewrap'
  ada = await ApiClient.named(control, 'ada')
  bob = await ApiClient.named(control, 'bob')
  sandbox = textIn(await ada.post('/api/sandboxes', { name: 'dev' }), 'id')
}, TIMEOUT_MS)
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})
afterEach(() => {
  agents = new FakeAgents()
})

function open(query: Readonly<Record<string, string>> = {}, caller = ada): PtyClient {
  const headers = { ...Object.fromEntries(caller.headers), host: `localhost:${control.port}` }
  return new PtyClient(
    { port: control.port, headers },
    `/ws/claude-stream?${new URLSearchParams({ sandbox, ...query })}`,
  )
}

/** What the sandbox was told about a new client. */
async function connect(query: Readonly<Record<string, string>> = {}, caller = ada) {
  await using client = open(query, caller)
  await eventually(() => client.messages.length > 0, { what: 'the first message', ...WAIT })
  return client.messages[0] as unknown as Readonly<
    Record<'type' | 'run' | 'name' | 'resumed' | 'input', string>
  >
}

async function refusal(query: Readonly<Record<string, string>>, caller = ada): Promise<unknown> {
  await using client = open(query, caller)
  return [await client.closed(), ...client.messages]
}

const NOT_FOUND = [
  { code: 4001, reason: 'session_not_found' },
  { type: 'system', subtype: 'session_not_found', message: expect.any(String) as unknown },
]

function agentOf(run: string): FakeAgent {
  const agent = agents.runs.get(run)
  if (agent === undefined) throw new Error('The agent was not started')
  return agent
}

describe('/ws/claude-stream', () => {
  test('starts Claude Code with the options of the query, and an opaque name', async () => {
    const { run, name, resumed, input } = await connect({
      mode: 'plan',
      model: 'sonnet',
      allowedTools: 'Read,Bash(git add, git commit)',
      disallowed_tools: 'WebFetch',
      max_thinking_tokens: '1000',
      max_turns: '7',
    })
    expect(name).toMatch(/^swt1\.k1\./)
    expect({ resumed, input }).toEqual({ resumed: '0', input: '1' })
    expect(agentOf(run).start).toMatchObject({
      agent: 'claude',
      task: '',
      model: 'sonnet',
      permission: 'ask',
      isInteractive: true,
      shares: true,
      claude: {
        permissionMode: 'plan',
        allowedTools: ['Read', 'Bash(git add, git commit)'],
        disallowedTools: ['WebFetch'],
        maxThinkingTokens: 1000,
      },
      limits: { maxTurns: 7, wallClockMs: 24 * 3_600_000, idleMs: 600_000 },
    })
    expect(JSON.stringify(agentOf(run).start)).not.toContain('sk-ant-test')
  })

  test('waits for its client at least as long as its sandbox stays awake', async () => {
    const restOf = async (sleepAfterSeconds: number): Promise<unknown> => {
      const name = `rest-${sleepAfterSeconds}`
      await ada.post('/api/sandboxes', { name, sleepAfterSeconds })
      return agentOf((await connect({ sandbox: name })).run).start['limits']
    }
    expect(await restOf(60)).toMatchObject({ idleMs: 600_000, restMs: 600_000 })
    expect(await restOf(3_600)).toMatchObject({ idleMs: 600_000, restMs: 3_600_000 })
    expect(await restOf(86_400)).toMatchObject({ idleMs: 600_000, restMs: 86_400_000 })
  })

  test('joins a session by its token or the name that the client chose', async () => {
    const first = await connect({ session_id: 'mine-2' })
    for (const session_id of ['mine-2', first.name, first.run])
      for (const resume of ['0', '1'])
        expect(await connect({ session_id, resume })).toMatchObject({ run: first.run, resumed: '1' })
    expect(agents.starts).toBe(1)
    const forced = await connect({ session_id: 'mine-2', force_new: '1' })
    expect(forced).toMatchObject({ resumed: '0' })
    expect((await connect({ session_id: 'mine-2' })).run).toBe(forced.run)
    expect(agents.starts).toBe(2)
  })

  test('continues the conversation of a program that has ended, only for a client that resumes', async () => {
    const first = await connect({ session_id: 'mine-3' })
    const agent = agentOf(first.run)
    agent.agentSessionId = 'conversation-1'
    agent.end()
    const next = await connect({ session_id: first.name, resume: '1' })
    expect(next).toMatchObject({ resumed: '1' })
    expect(agentOf(next.run).start).toMatchObject({ resume: 'conversation-1', task: '' })
    const other = await connect({ session_id: 'mine-3' })
    expect(other).toMatchObject({ resumed: '0' })
    expect(agentOf(other.run).start).not.toHaveProperty('resume')
    // A program that never began a conversation.
    agentOf(other.run).end()
    expect(await refusal({ session_id: other.name, resume: '1' })).toEqual(NOT_FOUND)
  })

  test('clients that start or continue the same session at the same time get the same program', async () => {
    const both = (query: Readonly<Record<string, string>>, mode = 'act') =>
      Promise.all([connect(query), connect({ ...query, mode })])
    const [first, same] = await both({ session_id: 'mine-5' })
    expect(same.run).toBe(first.run)
    agentOf(first.run).agentSessionId = 'conversation-5'
    agentOf(first.run).end()
    const [next, other] = await both({ session_id: first.name, resume: '1' })
    expect(other.run).toBe(next.run)
    expect(agentOf(next.run).start).toMatchObject({ resume: 'conversation-5' })
    // Also with a token from before, and after the program ended before it began a conversation of its own.
    expect((await connect({ session_id: first.name, resume: '1' })).run).toBe(next.run)
    agentOf(next.run).end()
    const [last] = await both({ session_id: first.name, resume: '1' })
    expect(last.run).not.toBe(next.run)
    expect(agentOf(last.run).start).toMatchObject({ resume: 'conversation-5' })
    expect((await connect({ session_id: 'mine-5', resume: '1' })).run).toBe(last.run)
    expect(agents.starts).toBe(3)
    agentOf(last.run).end()
    const [fresh, joined] = await both({ session_id: 'mine-5' })
    expect(joined.run).toBe(fresh.run)
    expect(agentOf(fresh.run).start).not.toHaveProperty('resume')
  })

  test('a session whose sandbox was deleted does not exist', async () => {
    const other = textIn(await ada.post('/api/sandboxes', { name: 'other' }), 'id')
    const { run, name } = await connect({ sandbox: other })
    agentOf(run).agentSessionId = 'conversation-6'
    agentOf(run).end()
    const isEnded = async () => textIn(await ada.get(`/api/runs/${run}`), 'state') === 'ended'
    await eventually(isEnded, { what: 'the end of the run', ...WAIT })
    expect((await ada.delete(`/api/sandboxes/${other}`)).status).toBeLessThan(300)
    for (const resume of ['0', '1'])
      expect(await refusal({ sandbox: other, session_id: name, resume })).toEqual(NOT_FOUND)
    expect(agents.starts).toBe(1)
  })

  test("(threat T4) another account's session does not exist", async () => {
    const { run, name } = await connect({ session_id: 'mine-4' })
    for (const session_id of [run, name])
      for (const resume of ['0', '1']) expect(await refusal({ session_id, resume }, bob)).toEqual(NOT_FOUND)
    expect(await refusal({ session_id: 'mine-4', resume: '1' }, bob)).toEqual(NOT_FOUND)
    expect(await refusal({ session_id: `${name.slice(0, -2)}xx`, resume: '1' })).toEqual(NOT_FOUND)
    expect(await refusal({ session_id: 'never', resume: '1' })).toEqual(NOT_FOUND)
    expect(agents.starts).toBe(1)
  })

  test('(threat T4) only watches with a credential that runs no commands, and as a viewer', async () => {
    const { run } = await connect()
    const watcher = await ApiClient.named(control, 'ada', { scope: 'sandbox:connect' })
    expect(await connect({ session_id: run }, watcher)).toMatchObject({ run, input: '0' })
    await shareWith(ada, bob, { sandbox, role: 'viewer', expiresSeconds: 60 })
    expect(await connect({ session_id: run }, bob)).toMatchObject({ run, input: '0' })
    for (const caller of [watcher, bob])
      expect(await refusal({ force_new: '1' }, caller)).toEqual([
        expect.objectContaining({ code: 4008 }),
        expect.objectContaining({ subtype: 'error' }),
      ])
    expect(agents.starts).toBe(1)
  })

  test('refuses a model that the operator does not allow, and wrong parameters', async () => {
    for (const query of [
      { model: 'gpt-1' },
      { mode: 'bypass' },
      { file: 'a:b' },
      { max_turns: 'x' },
      { cmd: 'id' },
    ])
      expect(await refusal(query)).toEqual([
        { code: 4004, reason: 'bad_request' },
        expect.objectContaining({ subtype: 'error' }),
      ])
    expect(agents.starts).toBe(0)
  })

  test('is among the capabilities', async () => {
    expect((await ada.get('/api/capabilities')).body).toMatchObject({
      features: { chat_claude_code: true, stream: true, approval: false },
    })
    expect((await ada.get('/health')).body).toMatchObject({ features: { chat_claude_code: true } })
  })
})

describe('the query of /ws/claude-stream', () => {
  const parse = (query: string) => parseClaudeQuery(new URLSearchParams(query))

  test('needs nothing', () => {
    expect(parse('')).toEqual({ sandbox: undefined, select: 'either', limits: {}, options: {} })
    expect(parse('test_events=1&model=&session_id=')).toEqual(parse(''))
  })

  test('gives a malformed id a new session, unless it is resumed', () => {
    expect(parse('session_id=a.b%20c')).toEqual(parse(''))
    expect(parse('session_id=a.b%20c&resume=1')).toMatchObject({ session: 'a.b c', select: 'resume' })
  })

  test.each(['mode=', 'mode=ask'])('%s asks for permission', (query) => {
    expect(parse(query).options).toEqual({})
  })

  test.each([
    'constructor=1',
    'model=--x%20y',
    'allowed_tools=,',
    'allowed_tools=a%00',
    'max_budget_usd=-1',
    'max_thinking_tokens=1.5',
    'allowed_tools=a&allowedTools=b',
    'resume=2',
  ])('%s is refused', (query) => {
    expect(() => parse(query)).toThrow('Cannot use parameter')
  })
})
