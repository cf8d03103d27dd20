import {
  type AgentStart,
  type AgentView,
  DEFAULT_LIMITS,
  type EventRange,
  type NumberedEvent,
  type RunEvent,
  type RunResult,
} from '@sandwire/agent'
import { eventually } from '@sandwire/testing'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { RunningSandboxd } from '../sandboxd.ts'

/** A program that runs the fake agent with this Bun, whatever its PATH. */
const FAKE_AGENT = join(mkdtempSync(join(tmpdir(), 'fake-agent-')), 'claude')
const script = resolve(import.meta.dir, 'fake-agent.ts')
writeFileSync(FAKE_AGENT, `#!/bin/sh\nexec '${process.execPath}' '${script}'\n`, { mode: 0o755 })

/** Sends requests to the agent routes of a sandboxd. */
export class AgentClient {
  readonly #sandboxd: Pick<RunningSandboxd, 'fetch' | 'socketUrl' | 'headers'>

  constructor(sandboxd: Pick<RunningSandboxd, 'fetch' | 'socketUrl' | 'headers'>) {
    this.#sandboxd = sandboxd
  }

  async send(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const init = { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const response = await this.#sandboxd.fetch(`/agents${path}`, init)
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
  }

  /** Starts the fake agent with steps, or any agent with other settings. */
  async start(id: string, steps: readonly object[], settings: Partial<AgentStart> = {}): Promise<AgentView> {
    const { status, body } = await this.send('PUT', `/${id}`, startOf(steps, settings))
    if (status > 201) throw new Error(`Cannot start: ${JSON.stringify(body)}`)
    return body as AgentView
  }

  async view(id: string): Promise<AgentView> {
    return (await this.send('GET', `/${id}`)).body as AgentView
  }

  async events(id: string, after = 0): Promise<readonly NumberedEvent[]> {
    const events: NumberedEvent[] = []
    for (let last = after; ; last = events.at(-1)?.seq ?? last) {
      const range = (await this.send('GET', `/${id}/events?after=${last}`)).body as EventRange
      events.push(...range.events)
      if (range.events.length === 0 || range.lastSeq === events.at(-1)?.seq) return events
    }
  }

  /** The first event of a type that is or will be in the journal. */
  async event<T extends RunEvent['type']>(
    id: string,
    type: T,
    matches: (event: Extract<RunEvent, { type: T }>) => boolean = () => true,
  ): Promise<Extract<RunEvent, { type: T }>> {
    const found = (event: RunEvent): event is Extract<RunEvent, { type: T }> =>
      event.type === type && matches(event as Extract<RunEvent, { type: T }>)
    for (let after = 0; ;) {
      const range = (await this.send('GET', `/${id}/events?after=${after}&wait=30`)).body as EventRange
      for (const { event, seq } of range.events) {
        after = seq
        if (found(event)) return event
        if (event.type === 'complete') throw new Error(`The run ended without "${type}"`)
      }
    }
  }

  async result(id: string): Promise<RunResult> {
    await this.event(id, 'complete')
    return (await this.send('GET', `/${id}/result`)).body as RunResult
  }

  async diff(id: string): Promise<string> {
    return (await this.#sandboxd.fetch(`/agents/${id}/diff`)).text()
  }

  /** All messages of the event socket until it closes. */
  async socket(
    id: string,
    after = 0,
    format: 'events' | 'lines' = 'events',
  ): Promise<{ readonly messages: readonly string[]; readonly code: number }> {
    const url = this.#sandboxd.socketUrl(`/agents/${id}/events?after=${after}&format=${format}`)
    const socket = new WebSocket(url, { headers: this.#sandboxd.headers } as unknown as string[])
    const messages: string[] = []
    let code = 0
    socket.addEventListener('message', ({ data }) => messages.push(String(data)))
    socket.addEventListener('close', (event) => (code = event.code))
    await eventually(() => code !== 0, { what: 'the event socket to close' })
    return { messages, code }
  }
}

export function startOf(steps: readonly object[], settings: Partial<AgentStart> = {}): AgentStart {
  const limits = { ...DEFAULT_LIMITS, stepMs: 300, ...settings.limits }
  return {
    agent: 'claude',
    program: FAKE_AGENT,
    task: JSON.stringify(steps),
    permission: 'auto',
    isInteractive: false,
    env: {},
    secrets: [],
    ...settings,
    limits,
  }
}
