import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { callTool, inTurns, say } from '@sandwire/testing/fake-anthropic'
import { readDescendants, readProcessMemory } from '@sandwire/testing'
import { AgentBench, delaysIn } from '../peers/agent-runs.ts'
import { openControl, openParts } from '../competitors.ts'
import { type Absent, atMost, below, type Competitor, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

const WORK = inTurns(callTool('Write', { file_path: 'made.txt', content: 'made\n' }), say('Done'))
/** A model that never answers. */
const SILENT = () => ({ content: [], fault: { kind: 'hang' } }) as const

/** Scripts that fill the working directory with 50,000 files of one line. A busy machine takes a while for each. */
const FILL = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(
  (part) => `mkdir ${part} && cd ${part} && seq 1 5000 | split -l 1 -a 5 -d -`,
)

const MEBIBYTE = 1024 * 1024
const MEMORY_RUNS = 4
/** Time for programs to become idle. */
const REST_MS = 2_000

const STREAM_PIECES = 50
const STREAM_PAUSE_MS = 2
/** Bun in every sandbox. */
const BUN = '/opt/sandwire/executable --no-env-file --config=/dev/null'
const STREAM_PROGRAM = resolve(import.meta.dir, '../programs/model-stream.ts')

const VIEWERS = 16
const EVENT_PIECES = 400
const EVENT_PAUSE_MS = 5

/** Opens the competitors of a row; without the agent's program, only says so. */
async function open(
  script: Parameters<typeof AgentBench.open>[0],
  competitors: (bench: AgentBench) => readonly Competitor[],
): Promise<readonly (Competitor | Absent)[]> {
  const bench = await AgentBench.open(script)
  if ('absent' in bench) return [{ name: 'sandwire run', ...bench }]
  const all = competitors(bench)
  // Closed with the first competitor.
  const close = (): Promise<void> => bench[Symbol.asyncDispose]()
  return all.map((each, index) => (index === 0 ? { ...each, [Symbol.asyncDispose]: close } : each))
}

interface Moments {
  /** From the start to the first request to the model. */
  readonly first: number
  /** From the last request to the end. */
  readonly last: number
}

async function runOurs(bench: AgentBench, fill: readonly string[]): Promise<Moments> {
  const sandbox = await bench.createSandbox(...fill)
  const before = bench.requests
  const startMs = performance.now()
  const id = await bench.startRun(sandbox)
  const firstMs = await bench.untilRequests(before + 1)
  const lastMs = await bench.untilRequests(before + 2)
  await bench.agents.ended(id)
  return { first: firstMs - startMs, last: performance.now() - lastMs }
}

/** Runs the agent's program in a new folder. */
async function runAlone(bench: AgentBench, fill: readonly string[]): Promise<Moments> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-agent-'))
  for (const script of fill) Bun.spawnSync(['sh', '-c', script], { cwd: folder })
  const before = bench.requests
  const startMs = performance.now()
  const child = bench.startAlone(folder, 'Work')
  const firstMs = await bench.untilRequests(before + 1)
  const lastMs = await bench.untilRequests(before + 2)
  await child.exited
  const last = performance.now() - lastMs
  rmSync(folder, { recursive: true })
  return { first: firstMs - startMs, last }
}

function createMomentRow(
  { id, title, about }: Pick<Row, 'id' | 'title' | 'about'>,
  moment: keyof Moments,
): Row {
  return {
    id,
    title,
    unit: 'ms',
    about,
    targets: [],
    open: () =>
      open(WORK, (bench) => [
        openControl('claude alone', async () => (await runAlone(bench, []))[moment]),
        openOurs('sandwire run', async () => (await runOurs(bench, []))[moment]),
        openControl('claude alone, 50,000 files', async () => (await runAlone(bench, FILL))[moment]),
        openOurs('sandwire run, 50,000 files', async () => (await runOurs(bench, FILL))[moment]),
      ]),
  }
}

function openOurs(name: string, measure: () => Promise<number>): Competitor {
  return { ...openControl(name, measure), side: 'ours' }
}

export const runStart = createMomentRow(
  {
    id: 'run-start',
    title: 'start a coding agent',
    about:
      'From the request that creates a run in a sandbox that exists to the first request to the model, with an empty workspace and with one of 50,000 files; beside it, the same program without Sandwire.',
  },
  'first',
)

export const runEnd = createMomentRow(
  {
    id: 'run-end',
    title: 'collect the diff of a coding agent',
    about:
      'From the last request to the model to the end of the run, whose diff is stored then; beside it, the exit of the same program without Sandwire.',
  },
  'last',
)

interface StreamDelays {
  readonly first: number
  readonly event: number
}

/** Measures in a sandbox, as a command of an agent, because only a run may use the gateway. */
async function measureGateway(bench: AgentBench): Promise<StreamDelays> {
  const program = Buffer.from(readFileSync(STREAM_PROGRAM)).toString('base64')
  const sandbox = await bench.createSandbox(`echo ${program} | base64 -d > model-stream.ts`)
  const id = await bench.startRun(sandbox)
  await bench.agents.ended(id)
  const printed = bench.api.requests.at(-1)?.lastToolResult ?? ''
  const found = /\{"first".*\}/.exec(printed)
  if (found === null) throw new Error(`Cannot measure the gateway: ${printed}`)
  return JSON.parse(found[0]) as StreamDelays
}

async function measureLoopback({ url }: AgentBench): Promise<StreamDelays> {
  return JSON.parse(await Bun.$`${process.execPath} ${STREAM_PROGRAM} ${url}`.text()) as StreamDelays
}

/** The delays as two competitors. */
function openDelays(name: string, measure: () => Promise<StreamDelays>): Competitor[] {
  return openParts({
    parts: [`${name}, first byte`, `${name}, event`],
    measure: async () => {
      const { first, event } = await measure()
      return { [`${name}, first byte`]: first, [`${name}, event`]: event }
    },
    close: async () => undefined,
  })
}

export const gatewayDelay: Row = {
  id: 'gateway',
  title: 'stream of the model API',
  unit: 'ms',
  digits: 2,
  about: `Median time to the first byte of 10 streams, and from sending to receiving each of their ${STREAM_PIECES} events.`,
  targets: [below('gateway, first byte', 15, 'ms'), below('gateway, event', 2, 'ms')],
  open: () =>
    open(
      inTurns(
        callTool('Bash', { command: `${BUN} model-stream.ts $ANTHROPIC_BASE_URL; rm model-stream.ts` }),
        say('Done'),
      ),
      (bench) => {
        bench.use({ begin: Promise.resolve(), pieces: STREAM_PIECES, pauseMs: STREAM_PAUSE_MS })
        return [
          ...openDelays('loopback', () => measureLoopback(bench)).map((each) => ({
            ...each,
            side: 'control' as const,
          })),
          ...openDelays('gateway', () => measureGateway(bench)),
        ]
      },
    ),
}

const TIMED_TASK = 'Answer with a timed stream'

/** Opens the events of a run; the promise within resolves when they have ended. */
async function openViewer(
  { agents }: AgentBench,
  run: string,
  onDelays: (delays: readonly number[]) => void,
): Promise<{ readonly closed: Promise<void> }> {
  const { port, headers } = agents.deployment.host
  const url = `ws://localhost:${port}/api/runs/${run}/events`
  const socket = new WebSocket(url, { headers } as unknown as string[])
  const opened = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  socket.addEventListener('open', () => opened.resolve())
  socket.addEventListener('error', () => opened.reject(new Error('Cannot open the events of the run')))
  socket.addEventListener('close', () => closed.resolve())
  socket.addEventListener('message', ({ data }) => {
    const text = String(data)
    // Events repeat the text of the pieces before.
    if (text.startsWith('{"partial"')) onDelays(delaysIn(text))
  })
  await opened.promise
  return { closed: closed.promise }
}

/** Delays of the text of an agent at several viewers of its run. */
async function watchRun(bench: AgentBench, viewers: number): Promise<number[]> {
  const begin = Promise.withResolvers<void>()
  bench.use({ begin: begin.promise, pieces: EVENT_PIECES, pauseMs: EVENT_PAUSE_MS })
  const id = await bench.startRun(await bench.createSandbox(), TIMED_TASK)
  await bench.agents.until(id, 'the run to work', ({ state }) => state === 'running')
  const delays: number[] = []
  const open = (): ReturnType<typeof openViewer> =>
    openViewer(bench, id, (received) => void delays.push(...received))
  const opened = await Promise.all(Array.from({ length: viewers }, open))
  begin.resolve()
  await Promise.all(opened.map(({ closed }) => closed))
  await bench.agents.ended(id)
  if (delays.length !== viewers * EVENT_PIECES)
    throw new Error(`Cannot measure: ${delays.length} of ${viewers * EVENT_PIECES} pieces were received`)
  return delays
}

/** Delays of the same text on the program's stdout. */
async function readAlone(bench: AgentBench): Promise<number[]> {
  bench.use({ begin: Promise.resolve(), pieces: EVENT_PIECES, pauseMs: EVENT_PAUSE_MS })
  const folder = mkdtempSync(join(tmpdir(), 'bench-agent-'))
  const child = bench.startAlone(
    folder,
    TIMED_TASK,
    '--output-format=stream-json',
    '--verbose',
    '--include-partial-messages',
  )
  const delays: number[] = []
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of child.stdout) {
    const lines = (rest + decoder.decode(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('{"type":"stream_event"')) delays.push(...delaysIn(line))
  }
  await child.exited
  rmSync(folder, { recursive: true })
  return delays
}

/** Two quantiles as competitors. */
function openQuantiles(name: string, measure: () => Promise<readonly number[]>): Competitor[] {
  return openParts({
    parts: [`${name}, p50`, `${name}, p99`],
    measure: async () => {
      const delays = await measure()
      return { [`${name}, p50`]: quantile(delays, 0.5), [`${name}, p99`]: quantile(delays, 0.99) }
    },
    close: async () => undefined,
  })
}

export const runEvents: Row = {
  id: 'run-events',
  title: "an agent's text at its viewers",
  unit: 'ms',
  digits: 1,
  about: `From sending each of ${EVENT_PIECES} pieces of text, ${EVENT_PAUSE_MS} ms apart, at the model to receiving it at viewers of the run's events. The agent collects pieces for 50 ms, also on the stdout of the program alone.`,
  targets: [],
  open: () =>
    open(inTurns(say('Done')), (bench) => [
      ...openQuantiles('claude alone', () => readAlone(bench)).map((each) => ({
        ...each,
        side: 'control' as const,
      })),
      ...openQuantiles('1 viewer', () => watchRun(bench, 1)),
      ...openQuantiles(`${VIEWERS} viewers`, () => watchRun(bench, VIEWERS)),
    ]),
}

function sumPss(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + readProcessMemory(pid).pssBytes, 0)
}

function treeOf(pid: number): number[] {
  return [pid, ...readDescendants(pid).map((each) => each.pid)]
}

function isAgent(pid: number): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('/opt/agents/')
}

/** MiB of each of several runs that wait for the model: of the agents, and of all processes that they need. */
async function measureRunMemory(
  bench: AgentBench,
): Promise<{ readonly agent: number; readonly all: number }> {
  const { deployment } = bench.agents
  const shared = (): number => sumPss([deployment.host.pid, deployment.workerd ?? 0].filter((pid) => pid > 0))
  const before = shared()
  const requests = bench.requests
  const sandboxes = await Promise.all(Array.from({ length: MEMORY_RUNS }, () => bench.createSandbox()))
  const runs = await Promise.all(sandboxes.map((sandbox) => bench.startRun(sandbox)))
  await bench.untilRequests(requests + MEMORY_RUNS)
  await Bun.sleep(REST_MS)
  const views = await Promise.all(runs.map((run) => bench.agents.view(run)))
  const pids = views.flatMap(({ sandbox }) => treeOf(deployment.supervisor(sandbox)))
  const agent = sumPss(pids.filter(isAgent))
  const all = sumPss(pids) + shared() - before
  for (const run of runs) await bench.agents.send('POST', `/api/runs/${run}/abort`)
  for (const run of runs) await bench.agents.ended(run)
  return { agent: agent / MEMORY_RUNS / MEBIBYTE, all: all / MEMORY_RUNS / MEBIBYTE }
}

async function measureAloneMemory(bench: AgentBench): Promise<number> {
  const requests = bench.requests
  const folders = Array.from({ length: MEMORY_RUNS }, () => mkdtempSync(join(tmpdir(), 'bench-agent-')))
  const children = folders.map((folder) => bench.startAlone(folder, 'Work'))
  await bench.untilRequests(requests + MEMORY_RUNS)
  await Bun.sleep(REST_MS)
  const bytes = sumPss(children.flatMap(({ pid }) => treeOf(pid)))
  for (const child of children) child.kill('SIGKILL')
  for (const child of children) await child.exited
  for (const folder of folders) rmSync(folder, { recursive: true })
  return bytes / MEMORY_RUNS / MEBIBYTE
}

export const runMemory: Row = {
  id: 'run-memory',
  title: 'memory of a run',
  unit: 'MiB',
  about: `PSS of ${MEMORY_RUNS} agents that wait for the model, divided by their number; with all processes of their sandboxes, and the growth of host and workerd.`,
  targets: [atMost('sandwire run, agent', 'claude alone', 1.2)],
  open: () =>
    open(SILENT, (bench) => [
      openControl('claude alone', () => measureAloneMemory(bench)),
      ...openParts({
        parts: ['sandwire run, agent', 'sandwire run, everything'],
        measure: async () => {
          const { agent, all } = await measureRunMemory(bench)
          return { 'sandwire run, agent': agent, 'sandwire run, everything': all }
        },
        close: async () => undefined,
      }),
    ]),
}
