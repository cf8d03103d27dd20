import { type NumberedEvent } from '@sandwire/agent'
import { eventually } from '@sandwire/testing'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Deployment } from '../deployment.ts'
import { findClaude } from './real-agents.ts'

/** On the disk of the installed program, so that it can be linked. */
const CACHE = resolve(import.meta.dir, '../../../../.cache')
/** Generous, for a loaded machine. */
const WAIT_MS = 90_000
const DISK_BYTES = 256 * 1024 ** 2

/** A run as the API returns it. */
export interface RunView {
  readonly id: string
  readonly sandbox: string
  readonly state: string
  readonly outcome: string | null
  readonly message: string | null
  readonly approvals: readonly { readonly requestId: string }[]
  readonly result: {
    readonly status: string
    readonly filesChanged: readonly string[]
    readonly diffBytes: number | null
    readonly diffProblem: string | null
  } | null
}

/** A host with the real Claude Code, which uses a scripted model API. */
export class AgentDeployment implements AsyncDisposable {
  readonly deployment: Deployment

  private constructor(deployment: Deployment) {
    this.deployment = deployment
  }

  static async open(apiUrl: string, env: Readonly<Record<string, string>> = {}): Promise<AgentDeployment> {
    const claude = await findClaude()
    if (claude.problem !== undefined) throw new Error(claude.problem)
    const deployment = await Deployment.open({
      parent: CACHE,
      env: { ANTHROPIC_API_KEY: 'sk-ant-test-0123456789', ANTHROPIC_BASE_URL: apiUrl, ...env },
    })
    const agents = join(deployment.data, 'agents')
    mkdirSync(agents, { recursive: true })
    Bun.spawnSync(['cp', '-al', `${claude.folder}/.`, agents])
    return new AgentDeployment(deployment)
  }

  async send(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
    const response = await this.deployment.fetch(path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
  }

  /** Starts a run in a new sandbox of its own. */
  async start(task: string, fields: object = {}): Promise<RunView> {
    const name = `run${crypto.randomUUID().slice(0, 8)}`
    await this.deployment.create(name, { limits: { diskBytes: DISK_BYTES } })
    const { status, body } = await this.send('POST', '/api/runs', { sandbox: name, task, ...fields })
    if (status !== 202) throw new Error(`Cannot start a run: ${JSON.stringify(body)}`)
    return body as RunView
  }

  async view(run: string): Promise<RunView> {
    return (await this.send('GET', `/api/runs/${run}`)).body as RunView
  }

  /** The run, once it is as wanted. Failed requests are repeated: the server may be starting. */
  until(run: string, what: string, isIt: (view: RunView) => boolean): Promise<RunView> {
    return eventually(
      async () => {
        const view = await this.view(run).catch(() => undefined)
        return view?.id !== undefined && isIt(view) && view
      },
      { what, timeoutMs: WAIT_MS, intervalMs: 200 },
    )
  }

  ended(run: string): Promise<RunView> {
    return this.until(run, 'the run to end', ({ state }) => state === 'ended')
  }

  async events(run: string): Promise<readonly NumberedEvent[]> {
    const { body } = await this.send('GET', `/api/runs/${run}/events?limit=1000`)
    return (body as { events: readonly NumberedEvent[] }).events
  }

  async diff(run: string): Promise<string> {
    return (await this.deployment.fetch(`/api/runs/${run}/diff`)).text()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.deployment[Symbol.asyncDispose]()
  }
}
