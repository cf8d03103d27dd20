import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  callTool,
  type FakeAnthropic,
  openFakeAnthropic,
  say,
  type Script,
} from '@sandwire/testing/fake-anthropic'
import { eventually } from '@sandwire/testing'
import { AgentDeployment } from './support/agents/agent-deployment.ts'
import { findClaude } from './support/agents/real-agents.ts'

const claude = await findClaude()
if (claude.problem !== undefined) console.error(`conversations on a host: skipped, ${claude.problem}`)

/** Generous, for a loaded machine. */
const WAIT_MS = 90_000

type Frame = Readonly<Record<string, unknown>>

/** Asks to write a file, then repeats what it was told. */
const script: Script = ({ isSide, toolResults, body }) => {
  if (isSide) return say('Title')
  if (toolResults === 0) return callTool('Write', { file_path: '/workspace/hello.txt', content: 'hello\n' })
  return say(JSON.stringify(body).includes('use tabs') ? 'With tabs' : 'Written')
}

class Browser implements Disposable {
  readonly frames: Frame[] = []
  readonly #socket: WebSocket

  constructor(agents: AgentDeployment, query: string) {
    const { port, headers } = agents.deployment.host
    this.#socket = new WebSocket(`ws://localhost:${port}/ws/v2?${query}`, { headers } as unknown as string[])
    this.#socket.addEventListener('message', ({ data }) =>
      this.frames.push(JSON.parse(String(data)) as Frame),
    )
  }

  send(frame: Frame): void {
    this.#socket.send(JSON.stringify(frame))
  }

  waitFor(type: string, count = 1): Promise<Frame> {
    const found = (): Frame | undefined => this.frames.filter((frame) => frame['type'] === type)[count - 1]
    const what = `frame ${count} of type ${type}`
    return eventually(async () => found() ?? false, { what, timeoutMs: WAIT_MS, intervalMs: 50 })
  }

  /** Texts of the assistant that are stored. */
  get texts(): string[] {
    return this.frames.flatMap(({ message }) => {
      const { type, message: inner } = (message ?? {}) as { type?: string; message?: { content: Frame[] } }
      return type === 'assistant' ? (inner?.content ?? []).flatMap(({ text }) => (text as string) ?? []) : []
    })
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }
}

describe.skipIf(claude.problem !== undefined)('a conversation with the real agent', () => {
  let api: FakeAnthropic
  let agents: AgentDeployment

  beforeAll(async () => {
    api = await openFakeAnthropic({ script })
    agents = await AgentDeployment.open(api.url)
  }, WAIT_MS)
  afterAll(async () => {
    await agents[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
  })

  test(
    'is shown to two browsers, asks one of them, and goes on after the server was killed',
    async () => {
      await agents.deployment.create('chat', { limits: { diskBytes: 256 * 1024 ** 2 } })
      using first = new Browser(agents, 'sessionId=s1&sandbox=chat')
      await first.waitFor('history_end')
      using second = new Browser(agents, 'sessionId=s1')
      await second.waitFor('history_end')
      first.send({ type: 'start', content: 'Write a file' })
      const request = await second.waitFor('tool_permission_request')
      expect(request).toMatchObject({ toolName: 'Write' })
      second.send({ type: 'permission_response', requestId: request['requestId'], decision: 'allow' })
      for (const browser of [first, second]) {
        await browser.waitFor('done')
        expect(browser.texts).toEqual(['Written'])
      }
      const file = await agents.deployment.fetch('/api/file?path=hello.txt&sandbox=chat')
      expect(await file.json()).toMatchObject({ content: 'hello\n' })
      await eventually(async () => first.frames.at(-1)?.['sandboxStatus'] === 'disconnected', {
        what: 'control to hang up',
        timeoutMs: WAIT_MS,
      })
      await agents.deployment.killWorkerd()
      await eventually(async () => (await agents.send('GET', '/health')).status === 200, {
        what: 'control to serve again',
        timeoutMs: WAIT_MS,
      })
      using third = new Browser(agents, 'sessionId=s1')
      await third.waitFor('history_end')
      third.send({ type: 'message', content: 'Please use tabs' })
      await third.waitFor('done', 2)
      expect(third.texts).toEqual(['Written', 'With tabs'])
    },
    WAIT_MS * 2,
  )
})
