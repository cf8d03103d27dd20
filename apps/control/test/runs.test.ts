import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { type RunningControl, startControl } from './support/control.ts'
import { FakeAgents } from './support/fake-agents.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

interface Run {
  readonly id: string
  readonly sandbox: string
  readonly state: string
  readonly outcome: string | null
  readonly message: string | null
  readonly result: {
    readonly status: string
    readonly filesChanged: string[]
    readonly diffBytes: number | null
  } | null
}

const sandboxes = new FakeSandboxes()
let agents = new FakeAgents()
let control: RunningControl

beforeAll(async () => {
  sandboxes.intercept = (request) => agents.handle(request)
  control = await startControl({
    runner: sandboxes,
    config: {
      runs: { concurrent: 2, queued: 3 },
      credentials: { hosts: [{ host: 'api.example', secret: 'RULE_KEY' }] },
    },
    bindings: { ANTHROPIC_API_KEY: 'sk-ant-test' },
  })
  control.host.isolation = 'bubblewrap'
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})
afterEach(async () => {
  for (const agent of agents.runs.values()) if (agent.state !== 'ended') agent.end()
  await eventually(async () => (await listRuns()).every(({ state }) => state === 'ended'), {
    what: 'every run to end',
  })
  agents = new FakeAgents()
})

async function listRuns(): Promise<Run[]> {
  return ((await (await control.fetch('/api/runs')).json()) as { runs: Run[] }).runs
}

async function createSandbox(): Promise<string> {
  const response = await control.fetch('/api/sandboxes', { method: 'POST', json: {} })
  return ((await response.json()) as { id: string }).id
}

async function create(body: object, headers: Record<string, string> = {}): Promise<Run> {
  const response = await control.fetch('/api/runs', { method: 'POST', json: body, headers })
  if (response.status !== 202) throw new Error(await response.text())
  return (await response.json()) as Run
}

async function show(id: string): Promise<Run> {
  return (await (await control.fetch(`/api/runs/${id}`)).json()) as Run
}

async function waitFor(id: string, state: string): Promise<Run> {
  return eventually(
    async () => {
      const run = await show(id)
      return run.state === state && run
    },
    { what: `the run to be ${state}`, intervalMs: 50 },
  )
}

function agentOf(id: string) {
  const agent = agents.runs.get(id)
  if (agent === undefined) throw new Error('The agent was not started')
  return agent
}

describe('a run in a sandbox that exists', () => {
  test('goes from queued to ended, and its events, result and diff stay', async () => {
    const sandbox = await createSandbox()
    const run = await create({ sandbox, task: 'Fix it', context: 'In a.ts' })
    expect(run).toMatchObject({ sandbox, state: 'queued', outcome: null })
    await waitFor(run.id, 'running')
    const agent = agentOf(run.id)
    expect(agent.start).toMatchObject({ task: 'Fix it\n\nIn a.ts', permission: 'auto', isInteractive: false })
    agent.emit({ type: 'stdout', data: 'Working' })
    agent.end('completed', 'diff --git a/a b/a\n')
    const ended = await waitFor(run.id, 'ended')
    expect(ended).toMatchObject({
      outcome: 'completed',
      result: { status: 'completed', filesChanged: ['a'] },
    })
    const diff = await control.fetch(`/api/runs/${run.id}/diff`)
    expect(await diff.text()).toBe('diff --git a/a b/a\n')
    // A browser never renders what an agent wrote.
    expect(Object.fromEntries(diff.headers)).toMatchObject({
      'content-disposition': 'attachment; filename="changes.diff"',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
      'x-content-type-options': 'nosniff',
    })
    const stored = await control.fetch(`/api/runs/${run.id}/events?after=1`)
    expect(await stored.json()).toMatchObject({
      state: 'ended',
      events: [{ seq: 2, event: { type: 'stdout' } }, { seq: 3 }, { seq: 4, event: { type: 'complete' } }],
    })
    // The sandbox existed before, so it stays.
    expect((await control.fetch(`/api/sandboxes/${sandbox}`)).status).toBe(200)
  })

  test('is destroyed with its sandbox when asked to', async () => {
    const sandbox = await createSandbox()
    const run = await create({ sandbox, task: 'x', keep: false })
    await waitFor(run.id, 'running')
    agentOf(run.id).end()
    await waitFor(run.id, 'ended')
    expect((await control.fetch(`/api/sandboxes/${sandbox}`)).status).toBe(404)
    expect((await show(run.id)).outcome).toBe('completed')
  })

  test('streams events as server-sent events from the beginning or after Last-Event-ID', async () => {
    const run = await create({ sandbox: await createSandbox(), task: 'x' })
    await waitFor(run.id, 'running')
    agentOf(run.id).end()
    const headers = { accept: 'text/event-stream' }
    const text = await (await control.fetch(`/api/runs/${run.id}/events`, { headers })).text()
    expect([...text.matchAll(/^id: (\d+)$/gm)].map(([, seq]) => seq)).toEqual(['1', '2', '3'])
    await waitFor(run.id, 'ended')
    const rest = await control.fetch(`/api/runs/${run.id}/events`, {
      headers: { ...headers, 'last-event-id': '2' },
    })
    const after = await rest.text()
    expect([...after.matchAll(/^(id|event): (\w+)$/gm)].map(([, , value]) => value)).toEqual([
      '3',
      'complete',
    ])
  })

  test('takes messages once, and answers to an approval exactly once', async () => {
    const run = await create({ sandbox: await createSandbox(), task: 'x', permission: 'ask' })
    await waitFor(run.id, 'running')
    const agent = agentOf(run.id)
    const message = { text: 'Also the tests', id: 'm1' }
    for (let at = 0; at < 2; at++)
      expect(
        (await control.fetch(`/api/runs/${run.id}/messages`, { method: 'POST', json: message })).status,
      ).toBe(202)
    expect(agent.messages).toEqual([{ ...message, by: 'local' }])
    agent.ask('r1')
    expect(await waitFor(run.id, 'awaiting')).toMatchObject({ approvals: [{ requestId: 'r1' }] })
    const answers = await Promise.all(
      ['allow', 'deny'].map((decision) =>
        control.fetch(`/api/runs/${run.id}/approvals/r1`, { method: 'POST', json: { decision } }),
      ),
    )
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 409])
  })

  test('is aborted, also while it waits in the queue, and has its diff', async () => {
    const run = await create({ sandbox: await createSandbox(), task: 'x' })
    await waitFor(run.id, 'running')
    const aborted = await control.fetch(`/api/runs/${run.id}/abort`, { method: 'POST' })
    expect(aborted.status).toBe(202)
    expect(await waitFor(run.id, 'ended')).toMatchObject({
      outcome: 'aborted',
      result: { filesChanged: ['a'] },
    })
    const late = await control.fetch(`/api/runs/${run.id}/messages`, { method: 'POST', json: { text: 'x' } })
    expect([late.status, ((await late.json()) as { error: { code: string } }).error.code]).toEqual([
      409,
      'run_ended',
    ])
  })

  test('is lost when its sandbox is destroyed', async () => {
    const sandbox = await createSandbox()
    const run = await create({ sandbox, task: 'x' })
    await waitFor(run.id, 'running')
    agents.runs.clear()
    await control.fetch(`/api/sandboxes/${sandbox}`, { method: 'DELETE' })
    expect(await waitFor(run.id, 'ended')).toMatchObject({ outcome: 'lost', result: { diffBytes: null } })
    const events = (await (await control.fetch(`/api/runs/${run.id}/events`)).json()) as {
      events: { event: { type: string } }[]
    }
    expect(events.events.at(-1)?.event.type).toBe('complete')
  })
})

test('a repeated request with the same key starts one run, and another request is refused', async () => {
  const sandbox = await createSandbox()
  const headers = { 'idempotency-key': 'k1' }
  const first = await create({ sandbox, task: 'x' }, headers)
  expect((await create({ sandbox, task: 'x' }, headers)).id).toBe(first.id)
  const other = await control.fetch('/api/runs', { method: 'POST', json: { sandbox, task: 'y' }, headers })
  expect(other.status).toBe(409)
  await waitFor(first.id, 'running')
  expect(agents.starts).toBe(1)
})

test('runs beyond the ceiling wait in order, and those beyond the queue are refused', async () => {
  const made: Run[] = []
  for (let at = 0; at < 5; at++) made.push(await create({ sandbox: await createSandbox(), task: `t${at}` }))
  const [first, second, third, fourth, fifth] = made.map(({ id }) => id)
  await waitFor(first ?? '', 'running')
  await waitFor(second ?? '', 'running')
  expect((await show(third ?? '')).state).toBe('queued')
  const refused = await control.fetch('/api/runs', {
    method: 'POST',
    json: { sandbox: await createSandbox(), task: 'x' },
  })
  expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([
    429,
    'too_many_runs',
  ])
  agentOf(second ?? '').end()
  await waitFor(second ?? '', 'ended')
  await waitFor(third ?? '', 'running')
  expect((await show(fourth ?? '')).state).toBe('queued')
  // A queued run that is aborted never starts.
  await control.fetch(`/api/runs/${fifth ?? ''}/abort`, { method: 'POST' })
  expect(await waitFor(fifth ?? '', 'ended')).toMatchObject({ outcome: 'aborted' })
  agentOf(first ?? '').end()
  await waitFor(first ?? '', 'ended')
  await waitFor(fourth ?? '', 'running')
  expect(agents.runs.has(fifth ?? '')).toBe(false)
})

test('a run is deleted when it has ended', async () => {
  const run = await create({ sandbox: await createSandbox(), task: 'x' })
  await waitFor(run.id, 'running')
  expect((await control.fetch(`/api/runs/${run.id}`, { method: 'DELETE' })).status).toBe(409)
  agentOf(run.id).end()
  await waitFor(run.id, 'ended')
  expect((await control.fetch(`/api/runs/${run.id}`, { method: 'DELETE' })).status).toBe(204)
  expect((await control.fetch(`/api/runs/${run.id}`)).status).toBe(404)
  expect((await listRuns()).map(({ id }) => id)).not.toContain(run.id)
})

test('requests with invalid fields are refused with the name of the field', async () => {
  const sandbox = await createSandbox()
  for (const [body, field] of [
    [{ task: 'x' }, 'repo'],
    [{ task: 'x', repo: 'git@github.com:a/b' }, 'repo'],
    [{ task: 'x', repo: 'https://user:secret@github.com/a/b' }, 'repo'],
    [{ task: 'x', repo: 'https://github.com/a/b', ref: '--upload-pack=x' }, 'ref'],
    [{ task: 'x', repo: 'https://github.com/a/b', ref: 'main@{1}' }, 'ref'],
    [{ task: 'x', repo: 'https://github.com/a/b', sandbox }, 'sandbox'],
    [{ task: '', sandbox }, 'task'],
    [{ task: 'x', sandbox, limits: { budgetUsd: 1_000 } }, 'limits.budgetUsd'],
  ] as const) {
    const response = await control.fetch('/api/runs', { method: 'POST', json: body })
    expect(response.status).toBe(400)
    expect(((await response.json()) as { error: { field: string } }).error.field).toBe(field)
  }
})

test('a run may use only hosts that have a header rule', async () => {
  const response = await control.fetch('/api/runs', {
    method: 'POST',
    json: { repo: 'https://github.com/owner/name', task: 'x', hosts: ['other.example'] },
  })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { code: 'bad_request', field: 'hosts' } })
  agents.onStart = (agent) => agent.end()
  const run = await create({ repo: 'https://github.com/owner/name', task: 'x', hosts: ['api.example'] })
  await waitFor(run.id, 'ended')
  const [agent] = [...agents.runs.values()]
  expect(agent?.start['wake']).toMatchObject({ url: 'http://127.0.0.1:3129/wake' })
})
