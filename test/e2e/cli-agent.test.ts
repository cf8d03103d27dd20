import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { runInProcess, startCommand } from '../../apps/cli/test/in-process.ts'
import { type RunningControl, startControl, TOKEN } from '../../apps/control/test/support/control.ts'
import { FakeAgents } from '../../apps/control/test/support/fake-agents.ts'
import { FakeSandboxes } from '../../apps/control/test/support/fake-sandboxes.ts'

const REPO = 'https://github.com/owner/name'
const PATCH = 'diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n'
const sandboxes = new FakeSandboxes()
let agents = new FakeAgents()
let control: RunningControl

beforeAll(async () => {
  sandboxes.intercept = (request) => agents.handle(request)
  control = await startControl({ runner: sandboxes, bindings: { ANTHROPIC_API_KEY: 'sk-ant-test' } })
  control.host.isolation = 'bubblewrap'
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})
beforeEach(() => void (agents = new FakeAgents()))

const options = () => ({ env: { SBX_URL: control.origin, SBX_TOKEN: TOKEN } })
const sbx = (...argv: string[]) => runInProcess(argv, options())

test('agent works on a repository, prints progress to stderr and the patch to stdout', async () => {
  agents.onStart = (agent) => {
    agent.emit({ type: 'stdout', data: 'Looking' })
    agent.withheld.push('leak.txt')
    agent.end('completed', PATCH)
  }
  const { stdout, stderr, code } = await sbx('agent', 'Fix it', '--repo', REPO)
  expect([stdout.toString(), code]).toEqual([PATCH, 0])
  expect(stderr).toContain('Looking')
  expect(stderr).toContain('1 file changed')
  expect(stderr).toContain("left out, because they contain the run's token: leak.txt")
})

test('--json prints every event once, and an outcome has the exit code of its error', async () => {
  agents.onStart = (agent) => agent.end('budget', PATCH)
  const { stdout, code } = await sbx('agent', 'x', '--repo', REPO, '--json')
  const events = stdout.toString().trim().split('\n')
  expect(events.map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual([1, 2, 3])
  expect(code).toBe(3)
})

test('a run is listed, shown, told something, aborted, and its diff printed', async () => {
  const running = startCommand(['agent', 'Wait', '--repo', REPO], options())
  const [agent] = await eventually(
    () => {
      const all = [...agents.runs.values()]
      return all.length > 0 && all
    },
    { what: 'the agent' },
  )
  const id = agent?.run ?? ''
  expect((await sbx('runs')).stdout.toString()).toContain(id)
  await eventually(async () => (await sbx('run', 'say', id, 'Use tabs')).code === 0, {
    what: 'the run to take messages',
    intervalMs: 100,
  })
  expect(agent?.messages).toMatchObject([{ text: 'Use tabs' }])
  expect((await sbx('run', 'show', id)).stdout.toString()).toContain('running')
  expect((await sbx('run', 'abort', id)).code).toBe(0)
  expect((await running.done).code).toBe(130)
  expect((await sbx('run', 'diff', id)).stdout.toString()).toBe('diff --git a/a b/a\n')
  expect((await sbx('run', 'events', id)).code).toBe(130)
  const late = await sbx('run', 'say', id, 'Too late')
  expect(late.stderr).toContain(`run show ${id}`)
})

test('questions of an agent are shown, and answered in their order', async () => {
  agents.onStart = (agent) => agent.ask('r1', 'Which?', 'What else?')
  const running = startCommand(['agent', 'Ask', '--repo', REPO], options())
  const shown = await eventually(
    async () => {
      const listed = JSON.parse((await sbx('runs', '--json')).stdout.toString()) as { runs: { id: string }[] }
      const id = listed.runs[0]?.id ?? ''
      const { stdout } = await sbx('run', 'show', id)
      return stdout.includes('What else?') && { id, text: stdout.toString() }
    },
    { what: 'the questions', intervalMs: 100 },
  )
  expect(shown.text).toContain('Which?')
  expect((await sbx('run', 'approve', shown.id, 'r1', '--answer', 'One')).code).toBe(2)
  expect((await sbx('run', 'approve', shown.id, 'r1', '--answer', 'One', '--answer', 'Two')).code).toBe(0)
  const agent = agents.runs.get(shown.id)
  expect(agent?.answered).toMatchObject({
    decision: 'allow',
    answers: { 'Which?': 'One', 'What else?': 'Two' },
  })
  agent?.end('completed')
  expect((await running.done).code).toBe(0)
})

test('wrong usage and unknown runs have a message and a hint', async () => {
  expect((await sbx('agent')).code).toBe(2)
  expect((await sbx('run', 'dance', 'x')).code).toBe(2)
  const missing = await sbx('run', 'show', `${'0'.repeat(32)}_${'0'.repeat(24)}`)
  expect([missing.code, missing.stderr]).toEqual([255, expect.stringContaining('hint: list your runs')])
})
