import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { AgentStart } from '@sandwire/agent'
import { eventually, PtyClient, type PtyMessage } from '@sandwire/testing'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentClient, startOf } from './support/agents/agent-client.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

const WAIT = { intervalMs: 20 }
const state = mkdtempSync(join(tmpdir(), 'agent-claude-stream-'))
let sandboxd: RunningSandboxd
let agents: AgentClient
let sessions = 0

beforeAll(async () => {
  sandboxd = await startSandboxd({ args: ['--state', state] })
  agents = new AgentClient(sandboxd)
})
afterAll(async () => {
  await sandboxd.stop()
  rmSync(state, { recursive: true, force: true })
})

/** Starts the fake agent, which waits for messages. */
async function start(settings: Partial<AgentStart> = {}): Promise<string> {
  const id = `session-${(sessions += 1)}`
  const session = { task: '', permission: 'ask', isInteractive: true, shares: true, claude: {} } as const
  await agents.start(id, [], { ...session, ...settings })
  return id
}

const open = (id: string, query: string): PtyClient =>
  new PtyClient(sandboxd, `/agents/${id}/claude-stream?name=me${query}`)

/** A client that got its first message. */
async function connect(id: string, query = '&input=1'): Promise<PtyClient> {
  const client = open(id, query)
  await until(client, 'connected', ({ subtype }) => subtype === 'connected')
  return client
}

const until = (client: PtyClient, what: string, is: (message: PtyMessage) => boolean) =>
  eventually(() => client.messages.find(is), { what, ...WAIT })
const kindOf = ({ type, subtype }: PtyMessage): string =>
  typeof subtype === 'string' ? `${type}/${subtype}` : type
/** What happens is sent to the fake agent as a message. */
const steps = (...list: readonly object[]): object => ({ type: 'user', message: JSON.stringify(list) })
const stateOf = async (id: string): Promise<string> => (await agents.view(id)).state
const end = (id: string) => agents.send('POST', `/${id}/stop`, { reason: 'aborted', message: 'Enough' })

test('passes on what is no line of JSON, and the end of the program', async () => {
  const id = await start()
  await using client = await connect(id)
  client.send(steps({ raw: 'no JSON\n' }, { stderr: 'oops\n' }, { say: 'Hello' }, { exit: 3 }))
  expect(await client.closed()).toEqual({ code: 1000, reason: 'complete' })
  const own = client.messages.filter((message) => kindOf(message) !== 'command_lifecycle')
  expect(own.map(kindOf).toSorted()).toEqual(
    ['assistant', 'raw', 'result/exit', 'system/connected', 'system/init', 'system/stderr'].toSorted(),
  )
  expect(own.at(-1)).toEqual({ type: 'result', subtype: 'exit', exit_code: 3 })
  expect(own.find(({ type }) => type === 'raw')).toEqual({ type: 'raw', data: 'no JSON' })
})

test('sends what no client was sent to the next one, once', async () => {
  const id = await start()
  const first = await connect(id)
  first.send(steps({ say: 'one' }, { wait: true }, { say: 'two' }, { wait: true }))
  await until(first, 'one', (message) => JSON.stringify(message).includes('"one"'))
  await first.disconnect()
  const send = (text: string) => agents.send('POST', `/${id}/messages`, { id: text, text, by: 'ann' })
  await send('go')
  await eventually(async () => JSON.stringify(await agents.events(id)).includes('"two"'), {
    what: 'two',
    ...WAIT,
  })
  await using second = await connect(id)
  await using third = await connect(id)
  await send('on')
  for (const client of [second, third])
    await until(client, 'heard on', (message) => JSON.stringify(message).includes('heard on'))
  const texts = (client: PtyClient) =>
    client.messages
      .filter(({ type }) => type === 'assistant')
      .map((message) => JSON.stringify(message['message']))
  expect(texts(second).map((text) => /"text":"([^"]*)"/.exec(text)?.[1])).toEqual([
    'heard go',
    'two',
    'heard on',
  ])
  expect(second.messages.slice(0, 2).map(kindOf)).toEqual(['system/connected', 'system/init'])
  expect(third.messages.slice(0, 2).map(kindOf)).toEqual(['system/connected', 'system/init'])
  await end(id)
})

test('reports a conversation that the program does not find', async () => {
  const id = await start({ resume: 'gone', program: '/bin/false' })
  await eventually(async () => (await stateOf(id)) === 'ended', { what: 'the end', ...WAIT })
  await using client = await connect(id)
  await client.closed()
  expect(client.messages.map(kindOf)).toEqual(['system/connected', 'system/session_not_found', 'result/exit'])
  // Control starts another program for a client that joins.
  await using late = open(id, '&join=1')
  await late.closed()
  expect(late.hasOpened).toBe(false)
})

test('a conversation is open in one session only', async () => {
  const id = await start({ resume: 'the-same' })
  const session = { task: '', isInteractive: true, shares: true, resume: 'the-same' } as const
  expect(await agents.send('PUT', '/second', startOf([], session))).toMatchObject({ status: 409 })
  await end(id)
})

test('a client without the right to send is only shown the session', async () => {
  const id = await start()
  await using viewer = await connect(id, '&input=0')
  viewer.send(steps({ say: 'never' }))
  await until(viewer, 'the refusal', ({ subtype }) => subtype === 'error')
  await using driver = await connect(id)
  driver.send(steps({ say: 'shown' }))
  await until(viewer, 'shown', (message) => JSON.stringify(message).includes('"shown"'))
  expect(JSON.stringify(viewer.messages)).not.toContain('never')
  await end(id)
})

test('a client that sends too much is closed', async () => {
  const id = await start()
  await using client = await connect(id)
  for (let sent = 0; sent < 400; sent += 1) client.send({ type: 'ping' })
  expect(await client.closed()).toEqual({ code: 4005, reason: 'rate_limited' })
  expect(client.messages.at(-1)).toMatchObject({ type: 'system', subtype: 'error' })
  await end(id)
})

test('a revocation closes the connection', async () => {
  const id = await start()
  await using client = await connect(id)
  const body = JSON.stringify({ identity: 'bearer' })
  const closed = await sandboxd.fetch('/attachments/close', { method: 'POST', body })
  expect(await closed.json()).toEqual({ closed: 1 })
  expect(await client.closed()).toEqual({ code: 4435, reason: 'revoked' })
  await end(id)
})

test('four sessions share a sandbox, an abandoned one makes room, and other runs wait', async () => {
  await eventually(
    async () => {
      const { body } = await agents.send('GET', '')
      return (body as { agents: { state: string }[] }).agents.every((each) => each.state === 'ended')
    },
    { what: 'the others to end', ...WAIT },
  )
  const ids = [await start(), await start(), await start(), await start()]
  await eventually(async () => (await Promise.all(ids.map(stateOf))).every((each) => each === 'idle'), {
    what: 'all to be idle',
    ...WAIT,
  })
  const clients = await Promise.all(ids.slice(1).map((id) => connect(id)))
  const fifth = await start()
  await using client = await connect(fifth)
  expect(['ending', 'collecting', 'ended']).toContain(await stateOf(ids[0] ?? ''))
  const refused = await agents.send(
    'PUT',
    '/sixth',
    startOf([], { task: '', isInteractive: true, shares: true }),
  )
  expect(refused).toMatchObject({
    status: 409,
    body: { error: { message: expect.stringContaining('4 are open') } },
  })
  expect((await agents.send('PUT', '/run', startOf([{ result: 'x' }]))).status).toBe(409)
  for (const each of clients) await each.disconnect()
  await client.disconnect()
  const isStarted = async () => (await agents.send('PUT', '/run', startOf([{ result: 'x' }]))).status === 201
  await eventually(isStarted, { what: 'a run in place of the sessions', ...WAIT })
})
