import { type FakeAnthropic, openFakeAnthropic, type Script } from '@sandwire/testing/fake-anthropic'
import { AgentDeployment } from '../../test/e2e/support/agents/agent-deployment.ts'
import { findClaude } from '../../test/e2e/support/agents/real-agents.ts'
import type { Absent } from '../row.ts'

const POLL_MS = 5
const WAIT_MS = 60_000
const DISK_BYTES = 1024 ** 3

/** A body of a response whose pieces say when they were sent. */
export interface TimedStream {
  /** Resolves when the pieces may be sent. */
  readonly begin: Promise<unknown>
  readonly pieces: number
  readonly pauseMs: number
}

interface ModelServer {
  stream: TimedStream | undefined
  readonly server: Bun.Server<undefined>
}

/** Time of the machine, in milliseconds with fractions. */
const nowMs = (): number => performance.timeOrigin + performance.now()

const MARK = /@(\d+\.\d+)@/g

/** How long ago the pieces in a text were sent. */
export function delaysIn(text: string): number[] {
  const receivedMs = nowMs()
  return [...text.matchAll(MARK)].map(([, sentMs]) => receivedMs - Number(sentMs))
}

function formatEvent(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}

async function* streamTimed({ begin, pieces, pauseMs }: TimedStream): AsyncGenerator<string, void> {
  const usage = { input_tokens: 1, output_tokens: 1 }
  const message = { id: 'msg_timed', type: 'message', role: 'assistant', model: 'timed', content: [], usage }
  const content_block = { type: 'text', text: '' }
  yield (
    formatEvent('message_start', { message }) +
      formatEvent('content_block_start', { index: 0, content_block })
  )
  await begin
  for (let sent = 0; sent < pieces; sent += 1) {
    await Bun.sleep(pauseMs)
    const delta = { type: 'text_delta', text: `@${nowMs().toFixed(3)}@` }
    yield formatEvent('content_block_delta', { index: 0, delta })
  }
  yield (
    formatEvent('content_block_stop', { index: 0 }) +
      formatEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage }) +
      formatEvent('message_stop', {})
  )
}

function toBody(pieces: AsyncGenerator<string, void>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const next = await pieces.next()
      if (next.done === true) controller.close()
      else controller.enqueue(encoder.encode(next.value))
    },
  })
}

/** The real agent on a host and without one, with a scripted model that also sends streams whose pieces have a time. */
export class AgentBench implements AsyncDisposable {
  readonly agents: AgentDeployment
  readonly api: FakeAnthropic
  readonly program: string
  readonly #timed: ModelServer

  private constructor(
    parts: Pick<AgentBench, 'agents' | 'api' | 'program'> & { readonly timed: ModelServer },
  ) {
    this.agents = parts.agents
    this.api = parts.api
    this.program = parts.program
    this.#timed = parts.timed
  }

  /** Why the agent's program cannot be had, or the bench. */
  static async open(script: Script): Promise<AgentBench | Omit<Absent, 'name'>> {
    const claude = await findClaude()
    if (claude.problem !== undefined) return { absent: claude.problem }
    const api = await openFakeAnthropic({ script })
    const timed: ModelServer = {
      stream: undefined,
      server: Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        idleTimeout: 0,
        async fetch(request) {
          const { pathname, search } = new URL(request.url)
          const body = await request.text()
          const { stream } = timed
          if (stream !== undefined && body.includes('timed stream') && pathname === '/v1/messages')
            return new Response(toBody(streamTimed(stream)), {
              headers: { 'content-type': 'text/event-stream' },
            })
          const { method, headers } = request
          return fetch(`${api.url}${pathname}${search}`, {
            method,
            headers,
            ...(method === 'POST' ? { body } : {}),
          })
        },
      }),
    }
    const agents = await AgentDeployment.open(`http://127.0.0.1:${timed.server.port}`)
    return new AgentBench({ agents, api, program: claude.program, timed })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#timed.server.port}`
  }

  /** Answers requests with the words "timed stream" by this stream from now on. */
  use(stream: TimedStream): void {
    this.#timed.stream = stream
  }

  /** Requests of conversations so far. */
  get requests(): number {
    return this.api.requests.filter(({ isSide }) => !isSide).length
  }

  /** Resolves when the scripted model has this many requests of conversations. */
  async untilRequests(wanted: number): Promise<number> {
    const endMs = performance.now() + WAIT_MS
    while (this.requests < wanted) {
      if (performance.now() > endMs) throw new Error('The agent made no request')
      await Bun.sleep(POLL_MS)
    }
    return performance.now()
  }

  /** Creates and starts a sandbox; `prepare` are shell scripts that fill its workspace. */
  async createSandbox(...prepare: readonly string[]): Promise<string> {
    const name = `bench${crypto.randomUUID().slice(0, 8)}`
    await this.agents.deployment.create(name, { limits: { diskBytes: DISK_BYTES } })
    await this.agents.send('POST', `/api/sandboxes/${name}/start`)
    for (const script of prepare) await this.#prepare(name, script)
    return name
  }

  async #prepare(name: string, script: string): Promise<void> {
    const request = { cmd: 'sh', args: ['-c', script], timeoutSeconds: 60 }
    const { body } = await this.agents.send('POST', `/api/sandboxes/${name}/exec`, request)
    const { exit } = body as { exit?: { code: number | null } }
    if (exit?.code !== 0) throw new Error(`Cannot prepare the sandbox: ${JSON.stringify(body)}`)
  }

  /** Begins a run; its sandbox is destroyed afterwards. */
  async startRun(sandbox: string, task = 'Work'): Promise<string> {
    const { body } = await this.agents.send('POST', '/api/runs', { sandbox, task, keep: false })
    const { id } = body as { id?: string }
    if (id === undefined) throw new Error(`Cannot start a run: ${JSON.stringify(body)}`)
    return id
  }

  /** Starts the agent's program without Sandwire, in a folder. */
  startAlone(folder: string, ...args: readonly string[]) {
    const argv = [this.program, '-p', '--permission-mode', 'acceptEdits', ...args]
    const env = {
      ...process.env,
      HOME: folder,
      ANTHROPIC_BASE_URL: this.url,
      ANTHROPIC_API_KEY: 'sk-ant-test',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CODE_STREAM_EVENT_HOLD_MS: '50',
    }
    return Bun.spawn(argv, { cwd: folder, env, stdin: 'ignore', stdout: 'pipe', stderr: 'ignore' })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agents[Symbol.asyncDispose]()
    await this.#timed.server.stop(true)
    await this.api[Symbol.asyncDispose]()
  }
}
