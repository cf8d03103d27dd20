import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { eventually, type ProcessEntry, readDescendants, readProcessTable } from '@sandwire/testing'
import { type HostOptions, type RunningHost, startHost } from './control.ts'
import { findLeftovers } from './leftovers.ts'
import { AS_NOBODY, NOBODY } from './nobody.ts'
import type { WireServer } from './wire-server.ts'

const CLI = resolve(import.meta.dir, '../../../apps/cli/src/main.ts')
/** Disk space of a sandbox. An account may have half of the disk, which may be small. */
const DISK_BYTES = 256 * 1024 ** 2
/** Generous, for a loaded machine. */
const WAIT_MS = 60_000

/** Control's description of a sandbox. */
export interface SandboxView {
  readonly id: string
  readonly name: string
  readonly state: string
  readonly reason: string | null
}

export interface DeploymentOptions extends Pick<HostOptions, 'args' | 'env'> {
  /** Run by an unprivileged user with its own home. */
  readonly isNobody?: boolean
  /** Where its folder is created; default `/tmp`. */
  readonly parent?: string
}

/** A host with workerd, CLI and its own data folder; disposing it removes everything. */
export class Deployment implements AsyncDisposable {
  /** Contains every file of the deployment. */
  readonly folder: string
  /** Ids of all sandboxes created so far. */
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

  static async open(given: DeploymentOptions = {}): Promise<Deployment> {
    const { isNobody = false, args = [], env = {}, parent = '/tmp' } = given
    const folder = mkdtempSync(join(parent, 'deployment-'))
    const data = join(folder, 'data')
    mkdirSync(data, { mode: 0o700 })
    if (isNobody) for (const each of [folder, data]) chownSync(each, NOBODY, NOBODY)
    const own = isNobody
      ? { prefix: AS_NOBODY, env: { HOME: folder, XDG_RUNTIME_DIR: undefined, ...env } }
      : { env }
    const options: HostOptions = { data, args: [...args, '--port', String(findPort())], ...own }
    return new Deployment(folder, options, await startHost(options))
  }

  /** The current host, or the last one. */
  get host(): RunningHost {
    return this.#host
  }

  get data(): string {
    return this.#host.data
  }

  /** Command line of the CLI that attaches to a sandbox as the host's user. */
  cli(sandbox: string): string[] {
    const url = `http://localhost:${this.#host.port}/attach`
    return [...(this.#options.prefix ?? []), process.execPath, CLI, url, '--sandbox', sandbox]
  }

  /** Environment in which the CLI finds this host and its token. */
  get env(): Record<string, string | undefined> {
    return { XDG_CONFIG_HOME: join(this.data, 'config'), ...this.#options.env }
  }

  /** Pid of the host's current workerd. */
  get workerd(): number | undefined {
    return workerdOf(this.#host)
  }

  /** Pid of a sandbox's supervisor. */
  supervisor(id: string): number {
    const state: unknown = JSON.parse(readFileSync(join(this.data, 'sandboxes', id, 'state.json'), 'utf8'))
    return Number(Reflect.get(Object(state), 'pid'))
  }

  /** Pid of a sandbox's sandboxd: the innermost process with its arguments. */
  sandboxd(id: string): number {
    const below = readDescendants(this.supervisor(id)).filter(({ pid }) =>
      commandOf(pid).includes(`--sandbox\0${id}`),
    )
    const { pid } = below.at(-1) ?? { pid: 0 }
    if (pid === 0) throw new Error('Cannot find sandboxd: it does not run')
    return pid
  }

  /** A sandbox as a server for the wire tests. */
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

  /** Sends a request to control on a new connection, because an older one may be dead after a kill. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return this.#host.fetch(path, { keepalive: false, signal: AbortSignal.timeout(WAIT_MS), ...init })
  }

  async create(name: string, settings: object = {}): Promise<SandboxView> {
    const response = await this.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, limits: { diskBytes: DISK_BYTES }, ...settings }),
    })
    if (response.status !== 201) throw new Error(`Cannot create "${name}": ${await response.text()}`)
    const created = toView(await response.json())
    this.ids.add(created.id)
    return created
  }

  async describe(name: string): Promise<SandboxView> {
    const response = await this.fetch(`/api/sandboxes/${name}`)
    if (!response.ok) throw new Error(`Cannot describe "${name}": ${await response.text()}`)
    return toView(await response.json())
  }

  async destroy(name: string): Promise<void> {
    const response = await this.fetch(`/api/sandboxes/${name}`, { method: 'DELETE' })
    // Runs destroy their own sandboxes.
    if (response.status !== 204 && response.status !== 404)
      throw new Error(`Cannot destroy "${name}": ${await response.text()}`)
  }

  async list(): Promise<SandboxView[]> {
    const answer: unknown = await (await this.fetch('/api/sandboxes')).json()
    const all: unknown = Reflect.get(Object(answer), 'sandboxes')
    return Array.isArray(all) ? all.map(toView) : []
  }

  /** Kills the host; its sandboxes keep running. */
  async killHost(): Promise<void> {
    this.#host.kill('SIGKILL')
    await this.#host.exited
  }

  async killWorkerd(): Promise<void> {
    const pid = await eventually(() => this.workerd, { what: 'workerd' })
    process.kill(pid, 'SIGKILL')
  }

  /** Starts a new host on the same data folder and port. */
  async restart(): Promise<void> {
    this.#host = await startHost(this.#options)
    this.#isDown = false
    this.#watch()
  }

  /** Destroys every sandbox and stops the host; keeps the folder for inspection. */
  async clear(): Promise<void> {
    if (this.#isDown) await this.restart()
    for (const { id } of await this.list()) {
      this.ids.add(id)
      await this.destroy(id)
    }
    await this.#host.stop()
    this.#isCleared = true
  }

  /** Processes, mounts, sockets, control groups, loop devices and files of one sandbox or all of them. */
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

  /** Waits until nothing of a sandbox, or of all, is left; rejects with the leftovers. */
  async waitUntilGone(id?: string): Promise<void> {
    const isGone = (): boolean => {
      const left = this.leftovers(id)
      if (left.length > 0) throw new Error(left.join('\n'))
      return true
    }
    await eventually(isGone, { what: 'everything to be gone' })
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
 * Finds a free port outside the kernel's ephemeral range: while a host is down, an outgoing connection could take its port,
 * and a client that reconnects could even connect to itself.
 */
function findPort(): number {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data: () => undefined } }).stop(true)
      return port
    } catch {
      // In use: try another.
    }
  }
}

/** Pid of a host's current workerd, zombies excluded. */
export function workerdOf(host: RunningHost): number | undefined {
  const isIt = ({ name, parentPid, state }: ProcessEntry): boolean =>
    name === 'workerd' && parentPid === host.pid && state !== 'Z'
  return readProcessTable().find(isIt)?.pid
}

/** NUL-separated arguments of a process; empty when it has ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    // Ended meanwhile.
    return ''
  }
}

/** Paths below a folder. Symlinks are not followed: one in a sandbox's folders leads to `/proc/self/fd`, and from there to the folder itself. */
function list(folder: string): string[] {
  try {
    const options = { cwd: folder, dot: true, onlyFiles: false, followSymlinks: false }
    return [...new Bun.Glob('**').scanSync(options)]
  } catch {
    // Missing, or removed while it was read.
    return []
  }
}

function toView(value: unknown): SandboxView {
  const { id, name, state, reason } = Object(value) as Record<string, unknown>
  return {
    id: String(id),
    name: String(name),
    state: String(state),
    reason: typeof reason === 'string' ? reason : null,
  }
}
