import { afterAll, beforeAll, expect, test } from 'bun:test'
import { DEFAULT_LIMITS, type LineRange, type NumberedEvent, type RunEvent } from '@sandwire/agent'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentClient, startOf } from './support/agents/agent-client.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

let sandboxd: RunningSandboxd
let agents: AgentClient
const state = mkdtempSync(join(tmpdir(), 'agent-state-'))
let runs = 0
const nextId = (): string => `run-${(runs += 1)}`

beforeAll(async () => {
  sandboxd = await startSandboxd({ args: ['--state', state] })
  agents = new AgentClient(sandboxd)
})

afterAll(async () => {
  await sandboxd.stop()
  rmSync(state, { recursive: true, force: true })
})

const ofType = <T extends RunEvent['type']>(
  events: readonly NumberedEvent[],
  type: T,
): readonly Extract<RunEvent, { type: T }>[] =>
  events
    .map(({ event }) => event)
    .filter((event): event is Extract<RunEvent, { type: T }> => event.type === type)

test('a run returns its diff, its summary and numbered events', async () => {
  const id = nextId()
  const started = await agents.start(id, [
    { say: 'Working' },
    { write: ['made.txt', 'made\n'] },
    { result: 'Done' },
  ])
  expect(started).toMatchObject({ run: id, state: 'preparing', isTamperProof: false })
  const result = await agents.result(id)
  expect(result).toMatchObject({ status: 'completed', summary: 'Done', exitCode: 0, diffProblem: null })
  expect(result.diff?.files).toMatchObject([{ path: 'made.txt', action: 'create', added: 1 }])
  expect(await agents.diff(id)).toContain('+made')
  const events = await agents.events(id)
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
  expect(events.at(-1)?.event).toEqual({ type: 'complete', exitCode: 0, signal: null })
  expect(ofType(events, 'stdout')).toEqual([{ type: 'stdout', data: 'Working\n' }])
  expect(ofType(events, 'result')).toMatchObject([
    { summary: 'Done', filesChanged: ['made.txt'], status: 'completed' },
  ])
  expect(ofType(events, 'file_change')).toEqual([{ type: 'file_change', path: 'made.txt', action: 'create' }])
  rmSync(join(sandboxd.workspace, 'made.txt'))
})

test('the same request starts a run once, another body is refused', async () => {
  const id = nextId()
  const body = startOf([{ result: 'Done' }])
  expect((await agents.send('PUT', `/${id}`, body)).status).toBe(201)
  expect((await agents.send('PUT', `/${id}`, body)).status).toBe(200)
  expect((await agents.send('PUT', `/${id}`, { ...body, task: '[]' })).status).toBe(409)
  await agents.result(id)
  const events = await agents.events(id)
  expect(ofType(events, 'complete')).toHaveLength(1)
  expect((await agents.send('DELETE', `/${id}`)).status).toBe(204)
  expect((await agents.send('GET', `/${id}`)).status).toBe(404)
  expect(readdirSync(join(state, 'agents'))).not.toContain(id)
})

test('lines that are not of the protocol are shown as text, and the run goes on', async () => {
  const id = nextId()
  await agents.start(id, [
    { raw: 'garbage\n{"type":\n\n[1]\n' },
    { stderr: 'a warning\n' },
    { say: 'still here' },
    { result: 'Done' },
  ])
  expect(await agents.result(id)).toMatchObject({ status: 'completed' })
  const events = await agents.events(id)
  const shown = ofType(events, 'stderr').map(({ data }) => data)
  expect(shown).toEqual(expect.arrayContaining(['garbage\n', '{"type":\n', 'a warning\n']))
})

test('a line of 10 MB is dropped with a warning', async () => {
  const id = nextId()
  await agents.start(id, [{ line: 10_000_000 }, { say: 'after' }, { result: 'Done' }])
  expect(await agents.result(id)).toMatchObject({ status: 'completed', summary: 'Done' })
  const events = await agents.events(id)
  expect(JSON.stringify(ofType(events, 'status'))).toContain('too long')
  expect(ofType(events, 'text')).toEqual([{ type: 'text', text: 'after' }])
})

test('an agent that dies in the middle of a line crashed, and its diff is there', async () => {
  const id = nextId()
  await agents.start(id, [{ write: ['half.txt', 'half\n'] }, { cut: true }])
  const result = await agents.result(id)
  expect(result).toMatchObject({ status: 'crashed', signal: 'SIGKILL', exitCode: null })
  expect(result.diff?.files).toMatchObject([{ path: 'half.txt' }])
  rmSync(join(sandboxd.workspace, 'half.txt'))
})

test('an agent that does not exit after its result is killed, and the run stays completed', async () => {
  const id = nextId()
  const limits = { ...DEFAULT_LIMITS, exitMs: 300, stepMs: 200 }
  await agents.start(
    id,
    [{ ignore: 'TERM' }, { write: ['kept.txt', 'x\n'] }, { result: 'Done' }, { hang: true }],
    { limits },
  )
  const result = await agents.result(id)
  expect(result).toMatchObject({ status: 'completed', summary: 'Done', signal: 'SIGKILL' })
  expect(result.diff?.files).toMatchObject([{ path: 'kept.txt' }])
  rmSync(join(sandboxd.workspace, 'kept.txt'))
})

test.each([
  ['reports nothing', { idleMs: 400 }, 'reported nothing'],
  ['works for too long', { wallClockMs: 600 }, 'reached its limit'],
])('an agent that %s is ended, and its diff is there', async (_, limit, message) => {
  const id = nextId()
  const limits = { ...DEFAULT_LIMITS, stepMs: 200, ...limit }
  await agents.start(id, [{ ignore: 'TERM' }, { write: ['late.txt', 'x\n'] }, { hang: true }], { limits })
  const result = await agents.result(id)
  expect(result).toMatchObject({ status: 'timed_out', signal: 'SIGKILL' })
  expect(result.message).toContain(message)
  expect(result.diff?.files).toMatchObject([{ path: 'late.txt' }])
  rmSync(join(sandboxd.workspace, 'late.txt'))
})

test('a program that cannot be started fails the run', async () => {
  const id = nextId()
  await agents.start(id, [], { program: '/nowhere/claude' })
  expect(await agents.result(id)).toMatchObject({ status: 'failed', exitCode: null })
})

test('a message is delivered once, and its receipt is an event', async () => {
  const id = nextId()
  await agents.start(id, [{ wait: true }, { result: 'Done' }])
  await agents.event(id, 'status', (event) => event.status === 'state' && event.state === 'turn')
  const message = { id: 'm1', text: 'hello', by: 'someone' }
  expect((await agents.send('POST', `/${id}/messages`, message)).status).toBe(200)
  expect((await agents.send('POST', `/${id}/messages`, message)).status).toBe(200)
  expect((await agents.send('POST', `/${id}/messages`, { ...message, text: 'other' })).status).toBe(409)
  await agents.result(id)
  const events = await agents.events(id)
  expect(ofType(events, 'text')).toEqual([{ type: 'text', text: 'heard hello' }])
  const receipts = ofType(events, 'status').flatMap((event) =>
    event.status === 'message' ? [event.receipt] : [],
  )
  expect(receipts).toEqual(['queued', 'started', 'completed'])
  expect((await agents.send('POST', `/${id}/messages`, message)).body).toEqual({
    id: 'm1',
    receipt: 'completed',
  })
  expect((await agents.send('POST', `/${id}/messages`, { ...message, id: 'm2' })).status).toBe(409)
})

test('of two answers to one approval the first decides', async () => {
  const id = nextId()
  await agents.start(id, [{ ask: 'Bash' }, { result: 'Done' }], { permission: 'ask' })
  const { requestId } = await agents.event(id, 'awaiting_input')
  expect((await agents.view(id)).approvals).toMatchObject([{ requestId, kind: 'permission' }])
  const answer = (decision: string, by: string): Promise<{ status: number }> =>
    agents.send('POST', `/${id}/approvals`, { requestId, decision, by })
  const statuses = await Promise.all([answer('allow', 'a'), answer('deny', 'b'), answer('deny', 'c')])
  expect(statuses.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(statuses.filter(({ status }) => status === 409)).toHaveLength(2)
  expect(
    (await agents.send('POST', `/${id}/approvals`, { requestId: 'other', decision: 'deny', by: 'a' })).status,
  ).toBe(404)
  await agents.result(id)
  const events = await agents.events(id)
  expect(ofType(events, 'status').filter((event) => event.status === 'approval')).toHaveLength(1)
})

test('an approval that nobody answers is denied at its deadline', async () => {
  const id = nextId()
  const limits = { ...DEFAULT_LIMITS, approvalMs: 300 }
  await agents.start(id, [{ ask: 'Bash' }, { result: 'Done' }], { permission: 'ask', limits })
  const { requestId } = await agents.event(id, 'awaiting_input')
  await agents.result(id)
  const events = await agents.events(id)
  expect(ofType(events, 'text')[0]?.text).toContain('"behavior":"deny"')
  expect(
    (await agents.send('POST', `/${id}/approvals`, { requestId, decision: 'allow', by: 'a' })).status,
  ).toBe(409)
})

test('an interrupted agent waits for a message and goes on', async () => {
  const id = nextId()
  await agents.start(id, [{ say: 'one' }, { wait: true }, { say: 'never' }])
  await agents.event(id, 'text')
  await agents.send('POST', `/${id}/interrupt`)
  await agents.event(id, 'awaiting_input', ({ kind }) => kind === 'message')
  expect((await agents.view(id)).state).toBe('idle')
  await agents.send('POST', `/${id}/messages`, { id: 'm', text: '[{"result":"Done after all"}]', by: 'a' })
  expect(await agents.result(id)).toMatchObject({ status: 'completed', summary: 'Done after all' })
})

test('a stopped run has its diff and the first reason', async () => {
  const id = nextId()
  await agents.start(id, [{ write: ['stopped.txt', 'x\n'] }, { say: 'ready' }, { hang: true }])
  await agents.event(id, 'text')
  await agents.send('POST', `/${id}/stop`, { reason: 'aborted', message: 'By someone' })
  await agents.send('POST', `/${id}/stop`, { reason: 'budget', message: 'Too late' })
  const result = await agents.result(id)
  expect(result).toMatchObject({ status: 'aborted', message: 'By someone' })
  expect(result.diff?.files).toMatchObject([{ path: 'stopped.txt' }])
  rmSync(join(sandboxd.workspace, 'stopped.txt'))
})

test('processes that an agent left behind are gone before the diff is made', async () => {
  const id = nextId()
  const loop = 'setsid sh -c "while :; do date +%N > left.txt; done" >/dev/null 2>&1 &'
  await agents.start(id, [{ run: loop }, { sleep: 200 }, { result: 'Done' }])
  const result = await agents.result(id)
  const before = await Bun.file(join(sandboxd.workspace, 'left.txt')).text()
  expect(await agents.diff(id)).toContain(before)
  expect(result.diff?.files).toHaveLength(1)
  rmSync(join(sandboxd.workspace, 'left.txt'))
})

test('secrets are in no event and in no diff', async () => {
  const id = nextId()
  const secret = 'grant-0123456789abcdef'
  const steps = [
    { say: `the token is ${secret}` },
    { raw: `${secret}\n` },
    { stderr: `${secret}\n` },
    { run: 'env > env.txt' },
    { result: secret },
  ]
  await agents.start(id, steps, { env: { TOKEN: secret }, secrets: [secret] })
  const result = await agents.result(id)
  expect(result.diff).toMatchObject({ withheld: ['env.txt'], files: [] })
  const all = JSON.stringify([await agents.events(id), result, await agents.diff(id), sandboxd.logs()])
  expect(all).not.toContain(secret)
  expect(all).toContain('[redacted]')
  rmSync(join(sandboxd.workspace, 'env.txt'))
})

test("the agent's own lines are there in the same three forms, redacted, and events refer to them", async () => {
  const id = nextId()
  const secret = `grant-${crypto.randomUUID()}`
  const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `${secret}!` } }
  const piece = `${JSON.stringify({ type: 'stream_event', event: delta })}\n`
  await agents.start(
    id,
    [{ wait: true }, { raw: piece }, { say: secret }, { wait: true }, { result: 'Done' }],
    {
      secrets: [secret],
    },
  )
  const live = agents.socket(id, 0, 'lines')
  await agents.event(id, 'status', (event) => event.status === 'session')
  for (const text of ['go', 'on']) await agents.send('POST', `/${id}/messages`, { id: text, text, by: 'ann' })
  await agents.result(id)
  const { lines, lastSeq } = (await agents.send('GET', `/${id}/events?format=lines`)).body as LineRange
  expect(lines.map(({ seq }) => seq)).toEqual(Array.from({ length: lastSeq }, (_, index) => index + 1))
  const own = lines.flatMap((entry) => (entry.kind === 'line' && 'line' in entry ? [entry.line] : []))
  expect(own).toContainEqual(expect.objectContaining({ type: 'result', result: 'Done' }))
  expect(own).toContainEqual(expect.objectContaining({ type: 'system', subtype: 'init' }))
  expect(lines).toContainEqual(expect.objectContaining({ kind: 'message', text: 'go', by: 'ann' }))
  const events = await agents.events(id)
  const said = lines.find((entry) => JSON.stringify(entry).includes('[redacted]'))
  expect(events[said?.eventSeq ?? -1]?.event).toEqual({ type: 'text', text: '[redacted]' })
  const { messages, code } = await live
  const sent = messages.map((message) => JSON.parse(message) as { seq?: number; line?: unknown })
  expect(code).toBe(1000)
  expect(sent.filter(({ seq }) => seq !== undefined)).toEqual(lines as never)
  const pieces = sent.filter(({ seq }) => seq === undefined).map(({ line }) => JSON.stringify(line))
  expect(pieces.join('\n')).toContain('[redacted]!')
  const response = await sandboxd.fetch(`/agents/${id}/events?format=lines&after=3`, {
    headers: { ...sandboxd.headers, accept: 'text/event-stream' },
  })
  const stream = await response.text()
  expect([...stream.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]))).toEqual(
    lines.slice(3).map(({ seq }) => seq),
  )
  expect(JSON.stringify([lines, messages, stream])).not.toContain(secret)
  expect((await agents.send('GET', `/${id}/events?format=other`)).status).toBe(400)
})

test('nothing waits for a viewer, and viewers get every event from where they are', async () => {
  const id = nextId()
  // Far more than any buffer of a socket or pipe.
  await agents.start(id, [{ flood: [100, 100_000] }, { result: 'Done' }])
  const url = sandboxd.socketUrl(`/agents/${id}/events`)
  const stalled = new WebSocket(url, { headers: sandboxd.headers } as unknown as string[])
  await agents.result(id)
  const [whole, rest] = await Promise.all([agents.socket(id), agents.socket(id, 50)])
  const numbers = (messages: readonly string[]): readonly number[] =>
    messages.map((message) => (JSON.parse(message) as NumberedEvent).seq)
  const events = await agents.events(id)
  expect(numbers(whole.messages)).toEqual(events.map(({ seq }) => seq))
  expect(numbers(rest.messages)).toEqual(events.slice(50).map(({ seq }) => seq))
  expect([whole.code, rest.code]).toEqual([1000, 1000])
  stalled.close()
  const response = await sandboxd.fetch(`/agents/${id}/events`, {
    headers: { ...sandboxd.headers, accept: 'text/event-stream', 'last-event-id': '50' },
  })
  const stream = await response.text()
  const ids = [...stream.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]))
  expect(ids).toEqual(events.slice(50).map(({ seq }) => seq))
})

test('a running agent counts as activity', async () => {
  const id = nextId()
  await agents.start(id, [{ wait: true }])
  const activity = (): Promise<unknown> => sandboxd.fetch('/activity').then((response) => response.json())
  expect(await activity()).toMatchObject({ agents: 1 })
  expect((await agents.send('PUT', `/${nextId()}`, startOf([]))).status).toBe(409)
  await agents.send('POST', `/${id}/stop`, { reason: 'aborted', message: 'x' })
  await agents.result(id)
  expect(await activity()).toMatchObject({ agents: 0 })
})

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'a run whose sandboxd ends by %s has its diff at the next start',
  async (signal) => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-state-'))
    const workspace = mkdtempSync(join(tmpdir(), 'agent-workspace-'))
    const options = { args: ['--state', folder], workspace }
    const first = await startSandboxd(options)
    const client = new AgentClient(first)
    await client.start('run', [{ write: ['survivor.txt', 'x\n'] }, { say: 'ready' }, { wait: true }])
    await client.event('run', 'text')
    const before = await client.events('run')
    first.kill(signal)
    await first.exited
    // They follow from the journal.
    if (signal === 'SIGKILL') rmSync(join(folder, 'agents', 'run', 'events'))
    await using second = await startSandboxd(options)
    const again = new AgentClient(second)
    const result = await again.result('run')
    expect(result.status).toBe(signal === 'SIGKILL' ? 'crashed' : 'aborted')
    expect(result.diff?.files).toMatchObject([{ path: 'survivor.txt' }])
    const events = await again.events('run')
    expect(events.slice(0, before.length)).toEqual([...before])
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1))
    expect(ofType(events, 'complete')).toHaveLength(1)
    expect((await again.send('POST', '/run/messages', { id: 'm', text: 'x', by: 'a' })).status).toBe(409)
    for (const name of [folder, workspace]) rmSync(name, { recursive: true, force: true })
  },
)
