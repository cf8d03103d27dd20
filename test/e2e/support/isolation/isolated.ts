import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DEFAULT_SANDBOX_LIMITS, ID_ALPHABET, type SandboxLimits } from '@sandwire/internal-api'
import { findBubblewrapProblem } from '../../../../apps/host/src/isolation/choose-isolation.ts'
import { bundleProgram } from '../../../../apps/host/src/isolation/daemon-bundle.ts'
import { defaultRunBase } from '../../../../apps/host/src/isolation/isolation.ts'
import { AS_NOBODY, NOBODY, nobodyProblem } from '../nobody.ts'

const SUPERVISOR = new URL('./test-supervisor.ts', import.meta.url).pathname
const STAND_IN = new URL('./stand-in.ts', import.meta.url).pathname

/** The user that starts sandboxes. */
export type Starter = 'root' | 'nobody'

/** Result of a command in the sandbox. */
export interface RunResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Why tests as this user cannot run here; undefined when they can. */
export async function findStarterProblem(starter: Starter): Promise<string | undefined> {
  const problem = await findBubblewrapProblem()
  if (problem !== undefined) return problem
  if (starter === 'root') return process.getuid?.() === 0 ? undefined : 'not started as root'
  return nobodyProblem
}

/** Prefix of a command that runs as this user. */
export function asStarter(starter: Starter): string[] {
  if (starter === 'root' || process.getuid?.() !== 0) return []
  return [...AS_NOBODY, '--']
}

/** Creates a data folder that the starter can access. */
export function createDataFolder(starter: Starter): string {
  const folder = mkdtempSync('/tmp/sandwire-isolation-')
  if (starter === 'nobody' && process.getuid?.() === 0) chownSync(folder, NOBODY, NOBODY)
  return folder
}

/** Folder of a sandbox's sockets. */
export function runFolderOf(starter: Starter, id: string): string {
  const uid = starter === 'nobody' && process.getuid?.() === 0 ? NOBODY : (process.getuid?.() ?? 0)
  return join(defaultRunBase({}, uid), id)
}

export function mintId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  return Array.from(bytes, (byte) => ID_ALPHABET[byte & 31]).join('')
}

/** A sandbox held by its own test supervisor process. */
export class IsolatedSandbox implements AsyncDisposable {
  readonly id: string
  readonly supervisor: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  #socket = ''
  readonly #messages: Record<string, unknown>[] = []
  readonly #wakers: (() => void)[] = []

  private constructor(id: string, supervisor: Bun.Subprocess<'pipe', 'pipe', 'inherit'>) {
    this.id = id
    this.supervisor = supervisor
    void this.#listen()
  }

  static async start(
    starter: Starter,
    dataFolder: string,
    options: {
      readonly id?: string
      readonly limits?: Partial<SandboxLimits>
      /** As on a machine without overlays. */
      readonly hasNoOverlays?: boolean
    } = {},
  ): Promise<IsolatedSandbox> {
    const cache = join(dataFolder, 'code')
    mkdirSync(cache, { recursive: true })
    const code = await bundleProgram(
      { name: 'stand-in', root: dirname(STAND_IN), entries: [basename(STAND_IN)] },
      cache,
    )
    const id = options.id ?? mintId()
    const limits = JSON.stringify({ ...DEFAULT_SANDBOX_LIMITS, ...options.limits })
    const overlays = options.hasNoOverlays === true ? ['no-overlays'] : []
    const argv = [process.execPath, SUPERVISOR, dataFolder, code, id, limits, ...overlays]
    const supervisor = Bun.spawn([...asStarter(starter), ...argv], { stdio: ['pipe', 'pipe', 'inherit'] })
    const sandbox = new IsolatedSandbox(id, supervisor)
    sandbox.#socket = String((await sandbox.await('ready'))['socket'])
    return sandbox
  }

  /** Runs a line of bash as the user. */
  async run(line: string): Promise<RunResult> {
    const response = await this.#post('/', line)
    return response.json()
  }

  /** Runs a line of bash as sandboxd's own user. */
  async runAsDaemon(line: string): Promise<RunResult> {
    return (await this.#post('/own', line)).json()
  }

  /** Makes the stand-in for sandboxd allocate memory. */
  async hoard(bytes: number): Promise<string> {
    return (await this.#post('/hoard', String(bytes))).text()
  }

  #post(path: string, body: string): Promise<Response> {
    return fetch(`http://sandbox${path}`, { unix: this.#socket, method: 'POST', body })
  }

  /** Waits for a message of a type from the test supervisor. */
  async await(type: string): Promise<Record<string, unknown>> {
    for (;;) {
      const found = this.#messages.find((each) => each['type'] === type)
      if (found !== undefined) return found
      const dead = this.#messages.find((each) => each['type'] === 'dead' || each['type'] === 'over')
      if (dead !== undefined) throw new Error(`The sandbox did not start: ${JSON.stringify(dead)}`)
      await new Promise<void>((resolve) => this.#wakers.push(resolve))
    }
  }

  async send(line: 'stop' | 'remove'): Promise<Record<string, unknown>> {
    await this.supervisor.stdin.write(`${line}\n`)
    await this.supervisor.stdin.flush()
    return this.await(line === 'stop' ? 'stopped' : 'removed')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.supervisor.exitCode === null && this.supervisor.signalCode === null) {
      await this.send('stop')
      await this.send('remove')
      await this.supervisor.stdin.write('exit\n')
      await this.supervisor.stdin.flush()
    }
    await this.supervisor.exited
  }

  async #listen(): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of this.supervisor.stdout) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#messages.push(JSON.parse(line))
      for (const wake of this.#wakers.splice(0)) wake()
    }
    this.#messages.push({ type: 'over' })
    for (const wake of this.#wakers.splice(0)) wake()
  }
}

/** Processes, mounts, files and control groups of a sandbox on this machine. */
export function findTraces(id: string, dataFolder: string): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const folders = [
    `/run/sandwire/${id}`,
    `/tmp/sandwire-${NOBODY}/${id}`,
    `${dataFolder}/isolation/files/${id}`,
  ]
  const groups = ['memory', 'pids', 'cpu', '.'].map((each) => `/sys/fs/cgroup/${each}/sandwire/${id}`)
  const loops = readdirSync('/sys/block')
    .map((each) => `/sys/block/${each}/loop/backing_file`)
    .filter((file) => existsSync(file) && readFileSync(file, 'utf8').includes(id))
  return [
    ...findProcesses(id),
    ...mounts.filter((line) => line.includes(id)),
    ...loops,
    ...[...folders, ...groups, `${dataFolder}/isolation/images/${id}.ext4`].filter((each) =>
      existsSync(each),
    ),
    ...listNames(`${dataFolder}/isolation/uids`),
  ]
}

/** Processes with a sandbox's id in their command line, except its supervisor. */
export function findProcesses(id: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map((pid) => ({ pid, line: textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ') }))
    .filter(({ line }) => line.includes(id) && !line.includes('test-supervisor.ts'))
    .map(({ pid, line }) => `${pid}: ${line.slice(0, 80)}`)
}

/** Processes whose command line has a mark that a test put there. */
export function findMarked(mark: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((pid) => textOf(`/proc/${pid}/cmdline`).includes(mark))
}

function listNames(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).map((name) => `claim ${name}`) : []
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Already ended.
    return ''
  }
}

export function removeDataFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}
