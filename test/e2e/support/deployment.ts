import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { eventually, type ProcessEntry, readDescendants, readProcessTable } from '@sandwire/testing'
import { type HostOptions, type RunningHost, startHost } from './control.ts'
import { findLeftovers } from './leftovers.ts'
import { AS_NOBODY, NOBODY } from './nobody.ts'
import type { WireServer } from './wire-server.ts'

const CLI = resolve(import.meta.dir, '../../../apps/cli/src/main.ts')
/** Long enough for a loaded machine; what is awaited comes at once elsewhere. */
const WAIT_MS = 20_000
/** Nothing of a sandbox may outlive it for longer. */
const GONE_MS = 5_000

/** What control says about a sandbox. */
export interface SandboxFacts {
  readonly id: string
  readonly name: string
  readonly state: string
  readonly reason: string | null
}

export interface DeploymentOptions extends Pick<HostOptions, 'args' | 'env'> {
  /** Started by an unprivileged user with a home of its own. */
  readonly isNobody?: boolean
}

/** The whole product as its user meets it, on a data folder of its own, which is left as if it had never been. */
export class Deployment implements AsyncDisposable {
  /** Holds everything that is put on the machine. */
  readonly folder: string
  /** Every sandbox there ever was. */
  readonly ids = new Set<string>()
  readonly #options: HostOptions
  #host: RunningHost
  #isDown = false
  #isCleared = false

  private constructor(folder: string, options: HostOptions, host: RunningHost) {
    this.folder = folder
    this.#options = options
    this.#host = host
    this.#watch()
  }

  static async open({ isNobody = false, args = [], env = {} }: DeploymentOptions = {}): Promise<Deployment> {
    const folder = mkdtempSync('/tmp/deployment-')
    const data = join(folder, 'data')
    mkdirSync(data, { mode: 0o700 })
    if (isNobody) for (const each of [folder, data]) chownSync(each, NOBODY, NOBODY)
    const own = isNobody
      ? { prefix: AS_NOBODY, env: { HOME: folder, XDG_RUNTIME_DIR: undefined, ...env } }
      : { env }
    const options: HostOptions = { data, args: [...args, '--port', String(findPort())], ...own }
    return new Deployment(folder, options, await startHost(options))
  }

  /** The host that runs now, or ran last. */
  get host(): RunningHost {
    return this.#host
  }

  get data(): string {
    return this.#host.data
  }

  /** The command line of the CLI that attaches to a sandbox, as this host's user types it. */
  cli(sandbox: string): string[] {
    const url = `http://localhost:${this.#host.port}/attach`
    return [...(this.#options.prefix ?? []), process.execPath, CLI, url, '--sandbox', sandbox]
  }

  /** What that user's environment adds: where servers and tokens of this machine are found. */
  get env(): Record<string, string | undefined> {
    return { XDG_CONFIG_HOME: join(this.data, 'config'), ...this.#options.env }
  }

  /** The workerd that the host runs now. */
  get workerd(): number | undefined {
    return workerdOf(this.#host)
  }

  /** The supervisor of a sandbox. */
  supervisor(id: string): number {
    const state: unknown = JSON.parse(readFileSync(join(this.data, 'sandboxes', id, 'state.json'), 'utf8'))
    return Number(Reflect.get(Object(state), 'pid'))
  }

  /** The sandboxd of a sandbox: the innermost process that has its arguments. */
  sandboxd(id: string): number {
    const below = readDescendants(this.supervisor(id)).filter(({ pid }) =>
      commandOf(pid).includes(`--sandbox\0${id}`),
    )
    const { pid } = below.at(-1) ?? { pid: 0 }
    if (pid === 0) throw new Error('Cannot find sandboxd: nothing runs')
    return pid
  }

  /** A sandbox, as the wire tests know servers. */
  sandbox(name: string): WireServer {
    const { port, headers } = this.#host
    return {
      port,
      headers,
      sandbox: name,
      socketUrl: (path) => `ws://127.0.0.1:${port}${path}${path.includes('?') ? '&' : '?'}sandbox=${name}`,
      fetch: (path, init) => this.fetch(path.replace(/^\/sessions/, '/api/account/sessions'), init),
      stop: () => Promise.resolve(),
    }
  }

  /** Asks control on a connection of its own: one of before a kill is of no use. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return this.#host.fetch(path, { keepalive: false, signal: AbortSignal.timeout(WAIT_MS), ...init })
  }

  async create(name: string, settings: object = {}): Promise<SandboxFacts> {
    const response = await this.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, ...settings }),
    })
    if (response.status !== 201) throw new Error(`Cannot create "${name}": ${await response.text()}`)
    const made = toFacts(await response.json())
    this.ids.add(made.id)
    return made
  }

  async describe(name: string): Promise<SandboxFacts> {
    const response = await this.fetch(`/api/sandboxes/${name}`)
    if (!response.ok) throw new Error(`Cannot describe "${name}": ${await response.text()}`)
    return toFacts(await response.json())
  }

  async destroy(name: string): Promise<void> {
    const response = await this.fetch(`/api/sandboxes/${name}`, { method: 'DELETE' })
    if (response.status !== 204) throw new Error(`Cannot destroy "${name}": ${await response.text()}`)
  }

  async list(): Promise<SandboxFacts[]> {
    const answer: unknown = await (await this.fetch('/api/sandboxes')).json()
    const all: unknown = Reflect.get(Object(answer), 'sandboxes')
    return Array.isArray(all) ? all.map(toFacts) : []
  }

  /** Kills the host as a crash would; its sandboxes live on. */
  async killHost(): Promise<void> {
    this.#host.kill('SIGKILL')
    await this.#host.exited
  }

  async killWorkerd(): Promise<void> {
    const pid = await eventually(() => this.workerd, { what: 'workerd', timeoutMs: WAIT_MS })
    process.kill(pid, 'SIGKILL')
  }

  /** Starts the next host on the same data folder and port. */
  async restart(): Promise<void> {
    this.#host = await startHost(this.#options)
    this.#isDown = false
    this.#watch()
  }

  /** Destroys every sandbox and stops the host; the folder stays, to be looked at. */
  async clear(): Promise<void> {
    if (this.#isDown) await this.restart()
    for (const { id } of await this.list()) {
      this.ids.add(id)
      await this.destroy(id)
    }
    await this.#host.stop()
    this.#isCleared = true
  }

  /** What is left of a sandbox, or of all of them, on this machine: processes, mounts, sockets, control groups, loop devices, files. */
  leftovers(id?: string): string[] {
    const marks = id === undefined ? [this.folder, ...this.ids] : [id]
    const bases = ['/run/sandwire', `/tmp/sandwire-${NOBODY}`]
    const files = [...bases, join(this.data, 'sandboxes'), join(this.data, 'isolation')].flatMap((base) =>
      list(base).filter((name) => marks.some((mark) => name.includes(mark))),
    )
    const processes = readProcessTable()
      .filter(({ pid, state }) => state !== 'Z' && marks.some((mark) => commandOf(pid).includes(mark)))
      .map(({ pid }) => `${pid} ${commandOf(pid).replaceAll('\0', ' ').slice(0, 100)}`)
    return [...processes, ...marks.flatMap((mark) => findLeftovers(mark)), ...files]
  }

  /** Waits, for no longer than things may take to be gone, until there is nothing left; rejects with what is. */
  async waitUntilGone(id?: string): Promise<void> {
    const look = (): boolean => {
      const left = this.leftovers(id)
      if (left.length > 0) throw new Error(left.join('\n'))
      return true
    }
    await eventually(look, { what: 'everything to be gone', timeoutMs: GONE_MS })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isCleared) await this.clear()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #watch(): void {
    const host = this.#host
    void host.exited.then(() => {
      if (host === this.#host) this.#isDown = true
    })
  }
}

/**
 * A free port that no outgoing connection is given by the kernel: while a host is down, one of those could take the port that the
 * next host needs, and a client that tries again would even reach itself.
 */
function findPort(): number {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data: () => undefined } }).stop(true)
      return port
    } catch {
      // Taken: the next one.
    }
  }
}

/** The workerd that a host runs now; one that was killed and is not buried yet is none. */
export function workerdOf(host: RunningHost): number | undefined {
  const isIt = ({ name, parentPid, state }: ProcessEntry): boolean =>
    name === 'workerd' && parentPid === host.pid && state !== 'Z'
  return readProcessTable().find(isIt)?.pid
}

/** The arguments of a process with NULs between them; empty when it is gone. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    // It ended meanwhile.
    return ''
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
  } catch {
    // Not there, or gone while it was read.
    return []
  }
}

function toFacts(value: unknown): SandboxFacts {
  const { id, name, state, reason } = Object(value) as Record<string, unknown>
  return {
    id: String(id),
    name: String(name),
    state: String(state),
    reason: typeof reason === 'string' ? reason : null,
  }
}
