import {
  callTool,
  type FakeAnthropic,
  inTurns,
  openFakeAnthropic,
  say,
} from '@sandwire/testing/fake-anthropic'
import { AgentDeployment } from '../../test/e2e/support/agents/agent-deployment.ts'
import { findClaude } from '../../test/e2e/support/agents/real-agents.ts'
import { openControl } from '../competitors.ts'
import type { Absent, Competitor, Row } from '../row.ts'

const POLL_MS = 5
const SCRIPT = inTurns(callTool('Write', { file_path: 'made.txt', content: 'made\n' }), say('Done'))

/** Resolves when the scripted model has this many requests of conversations. */
async function untilRequests(api: FakeAnthropic, wanted: number): Promise<number> {
  while (api.requests.filter(({ isSide }) => !isSide).length < wanted) await Bun.sleep(POLL_MS)
  return performance.now()
}

/** Measures runs on a host, and the agent without Sandwire; `measure` gets how many requests were made before. */
async function open(
  ours: (agents: AgentDeployment, api: FakeAnthropic) => Promise<number>,
  bare: (program: string, api: FakeAnthropic) => Promise<number>,
): Promise<readonly (Competitor | Absent)[]> {
  const claude = await findClaude()
  if (claude.problem !== undefined) return [{ name: 'sandwire run', absent: claude.problem }]
  const api = await openFakeAnthropic({ script: SCRIPT })
  const agents = await AgentDeployment.open(api.url)
  const close = async (): Promise<void> => {
    await agents[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
  }
  return [
    openControl('claude alone', () => bare(claude.program, api)),
    { name: 'sandwire run', side: 'ours', measure: () => ours(agents, api), [Symbol.asyncDispose]: close },
  ]
}

/** Runs the agent's program in a new folder; returns when it started, made its first request, its last, and ended. */
async function runAlone(
  program: string,
  api: FakeAnthropic,
): Promise<{ readonly first: number; readonly last: number }> {
  const before = api.requests.filter(({ isSide }) => !isSide).length
  const startMs = performance.now()
  const folder = (await Bun.$`mktemp -d`.text()).trim()
  const argv = [program, '-p', 'Work', '--permission-mode', 'acceptEdits']
  const env = { ...process.env, HOME: folder, ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'sk-ant-test' }
  const child = Bun.spawn(argv, { cwd: folder, env, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  const first = await untilRequests(api, before + 1)
  const last = await untilRequests(api, before + 2)
  await child.exited
  await Bun.$`rm -rf ${folder}`
  return { first: first - startMs, last: performance.now() - last }
}

export const runStart: Row = {
  id: 'run-start',
  title: 'start a coding agent',
  unit: 'ms',
  about:
    'From the request that creates a run in a sandbox that exists to the first request to the model; beside it, the same program without Sandwire.',
  targets: [],
  open: () =>
    open(
      async (agents, api) => {
        const before = api.requests.filter(({ isSide }) => !isSide).length
        const { id, startMs } = await startRun(agents)
        const firstMs = await untilRequests(api, before + 1)
        await agents.ended(id)
        return firstMs - startMs
      },
      async (program, api) => (await runAlone(program, api)).first,
    ),
}

export const runEnd: Row = {
  id: 'run-end',
  title: 'collect the diff of a coding agent',
  unit: 'ms',
  about:
    'From the last request to the model to the end of the run, whose diff is stored then; beside it, the exit of the same program without Sandwire.',
  targets: [],
  open: () =>
    open(
      async (agents, api) => {
        const before = api.requests.filter(({ isSide }) => !isSide).length
        const { id } = await startRun(agents)
        const lastMs = await untilRequests(api, before + 2)
        await agents.ended(id)
        return performance.now() - lastMs
      },
      async (program, api) => (await runAlone(program, api)).last,
    ),
}

async function startRun(agents: AgentDeployment): Promise<{ readonly id: string; readonly startMs: number }> {
  const { name } = await agents.deployment.create(`bench${crypto.randomUUID().slice(0, 8)}`)
  await agents.send('POST', `/api/sandboxes/${name}/start`)
  const startMs = performance.now()
  const { body } = await agents.send('POST', '/api/runs', { sandbox: name, task: 'Work', keep: false })
  return { id: (body as { id: string }).id, startMs }
}
