import { eventually, readDescendants, readProcessMemory } from '@sandwire/testing'
import { Miniflare } from 'miniflare'
import { type RunningControl, startControl, TOKEN } from '../../apps/control/test/support/control.ts'
import { buildWorkbench } from '../../test/e2e/support/built-workbench.ts'
import { findBrowserProblem } from '../../test/e2e/support/browser.ts'
import { type FakeAgent, FakeAgents } from '../../apps/control/test/support/fake-agents.ts'
import { FakeSandboxes } from '../../apps/control/test/support/fake-sandboxes.ts'
import { openParts } from '../competitors.ts'
import { BarePage } from '../peers/bare-page.ts'
import type { TranscriptPage } from '../programs/transcript-page.ts'
import { type Absent, below, type Competitor, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

declare const bench: TranscriptPage

const CONVERSATIONS = 1_000
/** The first ones load shared code and grow heaps. */
const WARM_UP = 300
const PARALLEL = 4
/** workerd evicts an object after ten seconds without requests. */
const REST_MS = 30_000
const WAIT_MS = 60_000
const KIBIBYTE = 1024
const EVENTS = 200
const EVENT_PAUSE_MS = 20
const PAINTED_EVENTS = 100
/** As fast as the scripted model makes the real Claude Code write. */
const FLOOD_EVENTS_PER_SECOND = 3_700
const FLOOD_MS = 3_000
const FLOOD_STEP_MS = 10

interface Bench extends AsyncDisposable {
  readonly control: RunningControl
  readonly agents: FakeAgents
  readonly workerd: number
}

/** The workerd that `start` starts. */
async function startWithWorkerd<T>(start: () => Promise<T>): Promise<{ started: T; workerd: number }> {
  const pids = (): number[] =>
    readDescendants(process.pid)
      .filter(({ name }) => name === 'workerd')
      .map(({ pid }) => pid)
  const before = pids()
  const started = await start()
  const workerd = pids().find((pid) => !before.includes(pid))
  if (workerd === undefined) throw new Error('Cannot find workerd: it does not run')
  return { started, workerd }
}

/** Control in workerd, with simulated sandboxes and agents in this process. */
async function openBench(workbench?: string): Promise<Bench> {
  const sandboxes = new FakeSandboxes()
  const agents = new FakeAgents()
  sandboxes.intercept = (request, server) => agents.handle(request, server)
  const { started: control, workerd } = await startWithWorkerd(() =>
    startControl({
      runner: sandboxes,
      bindings: { ANTHROPIC_API_KEY: 'sk-ant-bench' },
      ...(workbench === undefined ? {} : { workbench }),
    }),
  )
  control.host.isolation = 'bubblewrap'
  await post(control, '/api/sandboxes', { name: 'bench' })
  const close = async (): Promise<void> => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  }
  return { control, agents, workerd, [Symbol.asyncDispose]: close }
}

/** Posts until the account may: requests have a rate. */
async function post(control: RunningControl, path: string, json: object): Promise<{ readonly id: string }> {
  return eventually(
    async () => {
      const response = await control.fetch(path, { method: 'POST', json })
      if (response.status === 429) return false
      if (!response.ok) throw new Error(`POST ${path}: ${await response.text()}`)
      return (await response.json()) as { id: string }
    },
    { what: `POST ${path}`, timeoutMs: WAIT_MS, intervalMs: 100 },
  )
}

/** A conversation whose agent has answered once and waits for a message. */
async function converse({ control, agents }: Bench): Promise<string> {
  const { id } = await post(control, '/api/conversations', { sandbox: 'bench', permission: 'auto' })
  await post(control, `/api/conversations/${id}/messages`, { text: 'Hello' })
  const agent = await eventually(
    async () => [...agents.runs.values()].find(({ run }) => run.startsWith(`${id}-`)) ?? false,
    { what: 'an agent', timeoutMs: WAIT_MS, intervalMs: 10 },
  )
  agent.begin(crypto.randomUUID())
  agent.emit({ type: 'text', text: 'Hi' })
  agent.rest()
  await eventually(async () => agent.viewers.size === 0, { what: 'control to hang up', timeoutMs: WAIT_MS })
  return id
}

function openSocket(url: string, headers: Record<string, string> = {}): Promise<WebSocket> {
  const socket = new WebSocket(url, { headers } as unknown as string[])
  return new Promise((resolve, reject) => {
    socket.addEventListener('open', () => resolve(socket))
    socket.addEventListener('error', () => reject(new Error(`Cannot connect to ${url}`)))
  })
}

function openOurs({ port }: RunningControl, path: string): Promise<WebSocket> {
  const headers = { host: `localhost:${port}`, authorization: `Bearer ${TOKEN}` }
  return openSocket(`ws://127.0.0.1:${port}${path}`, headers)
}

async function repeat<T>(count: number, run: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let left = count
  const lane = async (): Promise<void> => {
    while (left-- > 0) results.push(await run())
  }
  await Promise.all(Array.from({ length: PARALLEL }, lane))
  return results
}

/** KiB of workerd for each conversation, before and after a browser follows it. */
async function measureIdle(): Promise<Readonly<Record<'resting' | 'with a browser', number>>> {
  await using bench = await openBench()
  const { control, workerd } = bench
  await repeat(WARM_UP, () => converse(bench))
  const settle = async (): Promise<number> => {
    await Bun.sleep(REST_MS)
    return readProcessMemory(workerd).anonymousBytes
  }
  const before = await settle()
  const ids = await repeat(CONVERSATIONS - WARM_UP, () => converse(bench))
  const resting = await settle()
  const sockets: WebSocket[] = []
  for (const id of ids) sockets.push(await openOurs(control, `/ws/v2?sessionId=${id}`))
  const followed = await settle()
  for (const socket of sockets) socket.close()
  const each = (bytes: number): number => bytes / ids.length / KIBIBYTE
  return { resting: each(resting - before), 'with a browser': each(followed - before) }
}

const BARE = `
import { DurableObject } from 'cloudflare:workers'
export class Bare extends DurableObject {
  fetch() {
    const { 0: client, 1: server } = new WebSocketPair()
    this.ctx.acceptWebSocket(server)
    return new Response(null, { status: 101, webSocket: client })
  }
}
export default {
  fetch: (request, { BARE }) => BARE.get(BARE.idFromName(new URL(request.url).pathname)).fetch(request),
}`

/** KiB of workerd for each socket of an object that does nothing. */
async function measureBare(): Promise<number> {
  const { started: miniflare, workerd } = await startWithWorkerd(async () => {
    const bare = new Miniflare({
      modules: [{ type: 'ESModule', path: 'index.js', contents: BARE }],
      compatibilityDate: '2026-07-01',
      compatibilityFlags: ['no_web_socket_compression'],
      durableObjects: { BARE: { className: 'Bare', useSQLite: true } },
      unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
    })
    await bare.ready
    return bare
  })
  const base = (await miniflare.unsafeGetDirectURL()).href.replace('http', 'ws')
  const sockets: WebSocket[] = []
  const open = async (count: number): Promise<number> => {
    for (let left = count; left > 0; left -= 1) sockets.push(await openSocket(`${base}${sockets.length}`))
    await Bun.sleep(REST_MS)
    return readProcessMemory(workerd).anonymousBytes
  }
  const before = await open(WARM_UP)
  const growth = (await open(CONVERSATIONS - WARM_UP)) - before
  for (const socket of sockets) socket.close()
  await miniflare.dispose()
  return growth / (CONVERSATIONS - WARM_UP) / KIBIBYTE
}

export const idleConversations: Row = {
  id: 'idle-conversations',
  title: 'memory per idle conversation',
  unit: 'KiB',
  digits: 1,
  about: `Growth of workerd's anonymous memory over ${CONVERSATIONS - WARM_UP} conversations whose agents have answered, 30 s after the last; then in all with a browser on each. Beside it, a WebSocket of an empty Durable Object each. Sandboxes and agents are simulated.`,
  targets: [],
  rounds: 1,
  open: async (): Promise<readonly (Competitor | Absent)[]> => [
    ...openParts({
      parts: ['resting', 'with a browser'],
      measure: measureIdle,
      close: async () => {},
    }),
    {
      name: 'empty object with a browser',
      side: 'control',
      measure: measureBare,
      [Symbol.asyncDispose]: async () => {},
    },
  ],
}

/** Median time in ms from an agent's event to the browser. */
async function measureDelay(agent: FakeAgent, socket: WebSocket): Promise<number> {
  const times: number[] = []
  const sent = new Map<string, number>()
  socket.addEventListener('message', ({ data }) => {
    const [key = ''] = /event-\d+-[0-9a-f-]{36}/.exec(String(data)) ?? []
    const atMs = sent.get(key)
    if (atMs === undefined) return
    sent.delete(key)
    times.push(performance.now() - atMs)
  })
  for (let number = 0; number < EVENTS; number += 1) {
    const text = `event-${number}-${crypto.randomUUID()}`
    sent.set(text, performance.now())
    agent.emit({ type: 'text', text })
    await Bun.sleep(EVENT_PAUSE_MS)
  }
  await eventually(async () => times.length === EVENTS, { what: 'all events', timeoutMs: WAIT_MS })
  return quantile(times, 0.5)
}

/** Resolves with the agent that control has connected to. */
function workingAgent({ agents }: Bench, prefix: string): Promise<FakeAgent> {
  return eventually(
    async () => [...agents.runs.values()].find(({ run }) => run.startsWith(prefix)) ?? false,
    { what: 'an agent', timeoutMs: WAIT_MS, intervalMs: 10 },
  )
}

async function measureRelay(bench: Bench): Promise<number> {
  const { control } = bench
  const { id } = await post(control, '/api/conversations', { sandbox: 'bench', permission: 'auto' })
  const socket = await openOurs(control, `/ws/v2?sessionId=${id}`)
  await post(control, `/api/conversations/${id}/messages`, { text: 'Hello' })
  const agent = await workingAgent(bench, `${id}-`)
  agent.begin(crypto.randomUUID())
  await eventually(async () => agent.viewers.size > 0, { what: 'control to connect', timeoutMs: WAIT_MS })
  const median = await measureDelay(agent, socket)
  socket.close()
  agent.end()
  return median
}

async function measurePassThrough(bench: Bench): Promise<number> {
  const { control } = bench
  const { id } = await post(control, '/api/runs', { sandbox: 'bench', task: 'Hello' })
  const agent = await workingAgent(bench, id)
  const socket = await openOurs(control, `/api/runs/${id}/events`)
  await eventually(async () => agent.viewers.size > 0, { what: 'the socket to open', timeoutMs: WAIT_MS })
  const median = await measureDelay(agent, socket)
  socket.close()
  agent.end()
  return median
}

export const conversationRelay: Row = {
  id: 'conversation-relay',
  title: 'event of an agent to a browser',
  unit: 'ms',
  digits: 2,
  about: `Median of ${EVENTS} events, 20 ms apart, from the sandbox to a WebSocket: relayed by a conversation, which stores them first, and passed through from a run. Sandboxes and agents are simulated.`,
  targets: [],
  open: async (): Promise<readonly (Competitor | Absent)[]> => {
    const bench = await openBench()
    return openParts({
      parts: ['conversation', 'run'],
      measure: async () => ({
        conversation: await measureRelay(bench),
        run: await measurePassThrough(bench),
      }),
      close: async () => bench[Symbol.asyncDispose](),
    })
  },
}

const PAGE_SCRIPT = new URL('../programs/transcript-page.ts', import.meta.url).pathname

interface PaintBench extends AsyncDisposable {
  readonly page: BarePage
  readonly agent: FakeAgent
}

/** A conversation whose agent works, in a page. */
async function openPaintBench(): Promise<PaintBench> {
  const built = await Bun.build({ entrypoints: [PAGE_SCRIPT], target: 'browser', format: 'iife' })
  const script = (await built.outputs[0]?.text()) ?? ''
  const bare = await openBench(await buildWorkbench())
  const { control } = bare
  const page = await BarePage.open(script)
  const close = async (): Promise<void> => {
    await page[Symbol.asyncDispose]()
    await bare[Symbol.asyncDispose]()
  }
  const { id } = await post(control, '/api/conversations', { sandbox: 'bench', permission: 'auto' })
  await post(control, `/api/conversations/${id}/messages`, { text: 'Hello' })
  const agent = await workingAgent(bare, `${id}-`)
  agent.begin(crypto.randomUUID())
  const code = crypto.randomUUID()
  control.host.codes.add(code)
  await page.goto(`${control.origin}/signin#${code}`)
  // The page goes on to another one, with which a call ends.
  const isOpen = (): Promise<boolean> => page.evaluate(() => bench.has('[aria-label="Agents"]'))
  await eventually(() => isOpen().catch(() => false), { what: 'the workbench', timeoutMs: WAIT_MS })
  await page.evaluate(() => bench.click('[aria-label="Agents"]'))
  await page.evaluate(() => bench.click('.run-row button'))
  await page.evaluate(() => bench.awaitText('Hello'))
  return { page, agent, [Symbol.asyncDispose]: close }
}

function nowMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Milliseconds from an event to the frame that shows it. */
async function timePaint({ page, agent }: PaintBench): Promise<number> {
  const text = `event-${crypto.randomUUID()}`
  const painted = page.evaluate((wanted) => bench.awaitText(wanted), text)
  // Resolved after the other has begun to listen.
  await page.evaluate(() => undefined)
  const startMs = nowMs()
  agent.emit({ type: 'text', text })
  return (await painted) - startMs
}

/** The longest task of the page during a flood, and how long after its last event that is shown. */
async function flood({
  page,
  agent,
}: PaintBench): Promise<{ readonly longest: number; readonly behind: number }> {
  await page.evaluate(() => bench.watchTasks())
  const last = `last-${crypto.randomUUID()}`
  const painted = page.evaluate((wanted) => bench.awaitText(wanted), last)
  await page.evaluate(() => undefined)
  const startMs = performance.now()
  let sent = 0
  while (performance.now() - startMs < FLOOD_MS) {
    const due = ((performance.now() - startMs) * FLOOD_EVENTS_PER_SECOND) / 1000
    for (; sent < due; sent += 1) agent.emit({ type: 'text', text: `Line ${sent} of the **agent**` })
    await Bun.sleep(FLOOD_STEP_MS)
  }
  const endMs = nowMs()
  agent.emit({ type: 'text', text: last })
  const behind = (await painted) - endMs
  return { longest: await page.evaluate(() => bench.longestTask()), behind }
}

export const conversationPaint: Row = {
  id: 'conversation-paint',
  title: 'event of an agent to the painted frame',
  unit: 'ms',
  digits: 1,
  about: `From an event in the sandbox to the frame of Chromium that shows it, ${PAINTED_EVENTS} events; then ${FLOOD_EVENTS_PER_SECOND} events per second for ${FLOOD_MS / 1000} s: the longest task of the page, and how long after the last event it is shown. Sandboxes and agents are simulated.`,
  targets: [below('longest task', 50, 'ms')],
  open: async (): Promise<readonly (Competitor | Absent)[]> => {
    const absent = findBrowserProblem()
    if (absent !== undefined) return [{ name: 'workbench', absent }]
    const opened = await openPaintBench()
    return openParts({
      parts: ['p50', 'p99', 'longest task', 'behind the flood'],
      measure: async () => {
        const times: number[] = []
        for (let count = 0; count < PAINTED_EVENTS; count += 1) times.push(await timePaint(opened))
        const { longest, behind } = await flood(opened)
        return {
          p50: quantile(times, 0.5),
          p99: quantile(times, 0.99),
          'longest task': longest,
          'behind the flood': behind,
        }
      },
      close: async () => opened[Symbol.asyncDispose](),
    })
  },
}
