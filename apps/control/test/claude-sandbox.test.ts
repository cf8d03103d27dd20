import { afterAll, beforeAll, expect, test } from 'bun:test'
import path from 'node:path'
import { eventually, rejectionOf } from '@sandwire/testing'
import { type RunningControl, startControl } from './support/control.ts'
import { FakeAgents } from './support/fake-agents.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const REPO = 'https://github.com/owner/name'
const sandboxes = new FakeSandboxes()
const agents = new FakeAgents()
let control: RunningControl

async function bundle(file: string): Promise<string> {
  const built = await Bun.build({
    entrypoints: [path.join(import.meta.dir, file)],
    target: 'browser',
    format: 'esm',
    external: ['cloudflare:*'],
  })
  return built.outputs[0]?.text() ?? ''
}

beforeAll(async () => {
  sandboxes.intercept = (request) => agents.handle(request)
  const claude = { className: 'ClaudeSandbox', scriptName: 'control', useSQLite: true }
  const worker = async (name: string, file: string) => ({
    name,
    modules: [{ type: 'ESModule' as const, path: 'index.js', contents: await bundle(file) }],
    modulesRoot: '/',
    compatibilityDate: '2026-07-01',
    durableObjects: { CLAUDE_SANDBOX: claude },
  })
  control = await startControl({
    runner: sandboxes,
    config: { runs: { bindingAccount: 'local' } },
    bindings: { ANTHROPIC_API_KEY: 'sk-ant-test' },
    workers: [
      await worker('caller', 'support/claude-caller.worker.mjs'),
      {
        ...(await worker('develop', '../../../packages/workflows/example/develop.worker.mjs')),
        workflows: { DEVELOP: { name: 'develop', className: 'DevelopWorkflow' } },
      },
    ],
  })
  control.host.isolation = 'bubblewrap'
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

/** Calls a method of the object with this name. */
async function call(name: string, method: string, ...args: unknown[]): Promise<unknown> {
  const response = await control.fetchWorker('caller', `/${name}/${method}`, args)
  const body = (await response.json()) as { value?: unknown; error?: string }
  if (body.error !== undefined) throw new Error(body.error)
  return body.value
}

test('execute clones the repository, runs the task and returns the diff; the same call returns the same run', async () => {
  agents.onStart = (agent) => agent.end('completed', 'diff --git a/x b/x\n')
  const options = { repo: REPO, ref: 'main', task: 'Fix it', context: 'Soon' }
  const first = await call('a', 'execute', options)
  expect(first).toMatchObject({
    diff: 'diff --git a/x b/x\n',
    summary: 'Done',
    filesChanged: ['a'],
    status: 'completed',
  })
  expect(agents.clones.at(-1)?.slice(-2)).toEqual([REPO, 'main'])
  expect(await call('a', 'execute', options)).toEqual(first)
  expect(agents.starts).toBe(1)
  // The sandbox of the run is gone.
  const { sandboxes: left } = (await (await control.fetch('/api/sandboxes')).json()) as {
    sandboxes: unknown[]
  }
  expect(left).toEqual([])
})

test('startSession returns a run that takes feedback and is aborted', async () => {
  agents.onStart = () => undefined
  const run = String(await call('b', 'startSession', { repo: REPO, task: 'x' }))
  const agent = await eventually(() => agents.runs.get(run), { what: 'the agent' })
  expect(agent.start).toMatchObject({ isInteractive: true })
  await eventually(() => call('b', 'sendFeedback', run, 'Use tabs').then(() => true), {
    what: 'the run to take messages',
    intervalMs: 50,
  })
  expect(agent.messages).toMatchObject([{ text: 'Use tabs', by: 'local' }])
  await call('b', 'abort', run)
  await eventually(
    async () =>
      ((await (await control.fetch(`/api/runs/${run}`)).json()) as { outcome: string }).outcome === 'aborted',
    { what: 'the end', intervalMs: 50 },
  )
})

test('research answers findings, review comments with file and line, both without write access', async () => {
  agents.onStart = (agent) => {
    agent.structured = { summary: 's', findings: [{ finding: 'f', file: 'a.ts', line: 3 }] }
    agent.end()
  }
  expect(await call('c', 'research', { repo: REPO, task: 'How?' })).toMatchObject({
    summary: 's',
    findings: [{ finding: 'f', file: 'a.ts', line: 3 }],
  })
  expect([...agents.runs.values()].at(-1)?.start['tools']).toEqual(['Read', 'Grep', 'Glob'])
  agents.onStart = (agent) => {
    agent.structured = { summary: 's', comments: [{ file: 'a.ts', line: 1, comment: 'c' }] }
    agent.end()
  }
  expect(await call('d', 'review', { repo: REPO, diff: 'THE DIFF' })).toMatchObject({
    comments: [{ file: 'a.ts', line: 1, comment: 'c' }],
  })
  expect(JSON.stringify([...agents.runs.values()].at(-1)?.start['task'])).toContain('THE DIFF')
})

test('a repository that cannot be cloned is an error with the message of git', async () => {
  agents.cloneCode = 128
  try {
    const error = await rejectionOf(call('e', 'execute', { repo: REPO, task: 'x' }))
    expect(String(error)).toContain('repository not found')
  } finally {
    agents.cloneCode = 0
  }
  const refused = await rejectionOf(call('f', 'execute', { repo: 'file:///etc', task: 'x' }))
  expect(String(refused)).toContain('expected https')
})

test('a request to the object of a run shows the run as text and takes typed lines', async () => {
  agents.onStart = () => undefined
  const run = String(await call('g', 'startSession', { repo: REPO, task: 'x' }))
  const agent = await eventually(() => agents.runs.get(run), { what: 'the agent' })
  agent.emit({ type: 'stdout', data: 'Hello' })
  const shown = await control.fetchWorker('caller', `/terminal/${run}`)
  expect(await shown.text()).toContain('Hello\r\n')
  expect(agent.messages.map(({ text }) => text)).toContain('typed')
  agent.end()
})

test('a workflow implements an issue and reviews the change', async () => {
  agents.onStart = (agent) => {
    agent.structured = { summary: 's', comments: [{ file: 'a', line: 1, comment: 'ok' }] }
    agent.end('completed', 'diff --git a/w b/w\n')
  }
  await control.fetchWorker('develop', '/issue-1', { repo: REPO, title: 'Fix', body: 'It breaks' })
  const status = await eventually(
    async () => {
      const shown = (await (await control.fetchWorker('develop', '/issue-1')).json()) as {
        status: string
        output: unknown
      }
      return shown.status === 'complete' && shown
    },
    { what: 'the workflow to complete', intervalMs: 200 },
  )
  expect(status.output).toMatchObject({
    diff: 'diff --git a/w b/w\n',
    files: ['a'],
    comments: [{ file: 'a', line: 1, comment: 'ok' }],
  })
})
