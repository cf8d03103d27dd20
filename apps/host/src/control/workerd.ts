import { closeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { doublingDelayMs, SandwireError } from '@sandwire/protocol'
import { identifyProcess, type ProcessIdentity } from '../data/process-identity.ts'
import type { Log } from '../log.ts'
import { readLines } from '../read-lines.ts'
import { closeConnections } from '../slots/close-connections.ts'

/** A cold start on a loaded machine takes seconds; longer than this means a hang. */
const READY_TIMEOUT_MS = 30_000
/** Time for the response to the disconnect request to be sent before workerd is killed. */
const KILL_DELAY_MS = 100
/** After the standard streams and the control descriptor. */
export const FIRST_INHERITED_FD = 4
/** Last output lines that explain a failed start. */
const MAX_LAST_LINES = 20

export interface WorkerdOptions {
  /** The executable, after a prefix that may change the user. */
  readonly command: readonly string[]
  /** Descriptors that it inherits, from `FIRST_INHERITED_FD` on. */
  readonly inherited: readonly number[]
  /** Encoded configuration; passed by pipe, because it contains keys. */
  readonly config: Uint8Array
  /** How many sockets must listen before it counts as ready. */
  readonly sockets: number
  /** Called before each start. */
  readonly beforeLaunch?: () => void
  /** Called for each process before it gets its configuration, so that every orphan is recorded. */
  readonly onProcess: (identity: ProcessIdentity) => void
  /** Called when the last reported process has ended. */
  readonly onProcessEnd: () => void
  /** Called for each output line. */
  readonly onLine: (line: string) => void
  /** Called when it serves again after a crash. */
  readonly onRestarted: () => void
  /** Called when the first restart fails. */
  readonly onRestartFailed: (message: string) => void
  readonly log: Log
  readonly nowMs: () => number
}

type Child = Bun.Subprocess<'pipe', 'pipe', 'pipe'>

/** A serving process; `exited` resolves with how it ended. */
interface Run {
  readonly child: Child
  readonly exited: Promise<string>
}

/** Runs workerd, and restarts it on the same ports whenever it dies before `end`. */
export class Workerd {
  readonly #options: WorkerdOptions
  #run: Run | undefined
  #isEnding = false
  /** Ends the pause between two restarts. */
  #wake: () => void = () => undefined
  #watch: Promise<void> = Promise.resolve()

  private constructor(options: WorkerdOptions) {
    this.#options = options
  }

  /** Starts workerd and waits until it listens. Throws when the first start fails; later starts are retried. */
  static async start(options: WorkerdOptions): Promise<Workerd> {
    const workerd = new Workerd(options)
    workerd.#run = await workerd.#launch()
    workerd.#watch = workerd.#superviseProcess()
    return workerd
  }

  /** Undefined while it does not run. */
  get pid(): number | undefined {
    return this.#run?.child.pid
  }

  /** Stops accepting requests; open connections continue. New ones wait in the kernel until `end`. */
  stopListening(): void {
    this.#isEnding = true
    this.#run?.child.kill('SIGTERM')
  }

  /**
   * Closes workerd's unix socket connections, except those whose listener is in `exceptPids`; clients reconnect. Where the machine
   * does not allow that, workerd is killed and restarted instead.
   */
  closeSandboxConnections(exceptPids: ReadonlySet<number>, close = closeConnections): void {
    const child = this.#run?.child
    if (child === undefined) return
    // Its pipes to this process are unix sockets too.
    if (close(child.pid, new Set([...exceptPids, process.pid, child.pid]))) return
    this.#options.log.warn('control_killed_to_cut', { pid: child.pid })
    setTimeout(() => child.kill('SIGKILL'), KILL_DELAY_MS)
  }

  /** Kills workerd without waiting. */
  abandon(): void {
    this.#isEnding = true
    this.#run?.child.kill('SIGKILL')
  }

  async end(): Promise<void> {
    this.abandon()
    this.#wake()
    await this.#watch
  }

  async #launch(): Promise<Run> {
    const { command, inherited, config, beforeLaunch } = this.#options
    beforeLaunch?.()
    const child: Child = Bun.spawn([...command, 'serve', '--binary', '--control-fd=3', '-'], {
      // It opens its working directory, and its user may not enter the host's.
      cwd: '/',
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', ...inherited],
      env: { TZ: 'UTC' },
      // Its own session: Ctrl-C reaches only the host, which stops workerd in order.
      detached: true,
    })
    const lastLines: string[] = []
    const onLine = (line: string): void => {
      lastLines.push(line)
      if (lastLines.length > MAX_LAST_LINES) lastLines.shift()
      this.#options.onLine(line)
    }
    const outputRead = Promise.allSettled([follow(child.stdout, onLine), follow(child.stderr, onLine)])
    const exited = child.exited.then((code): string => {
      this.#options.onProcessEnd()
      return String(child.signalCode ?? `exit ${code}`)
    })
    const identity = identifyProcess(child.pid)
    if (identity !== undefined) this.#options.onProcess(identity)
    await feed(child, config)
    const isReady = await this.#isListening(child, exited)
    if (isReady) return { child, exited }
    child.kill('SIGKILL')
    const how = await exited
    await outputRead
    throw new SandwireError('provider_unavailable', `Cannot run control: workerd did not start (${how})`, {
      // Without stack addresses.
      cause: lastLines.filter((line) => !line.startsWith('stack: ')).join('\n'),
    })
  }

  async #isListening(child: Child, exited: Promise<string>): Promise<boolean> {
    const fd = child.stdio[3]
    if (typeof fd !== 'number') return false
    const timer = Promise.withResolvers<boolean>()
    const timeout = setTimeout(() => timer.resolve(false), READY_TIMEOUT_MS)
    const ready = countListening(fd, this.#options.sockets)
    const isReady = await Promise.race([ready, exited.then(() => false), timer.promise])
    clearTimeout(timeout)
    closeSync(fd)
    return isReady
  }

  async #superviseProcess(): Promise<void> {
    while (this.#run !== undefined) {
      const sinceMs = this.#options.nowMs()
      const how = await this.#run.exited
      this.#run = undefined
      if (this.#isEnding) return
      this.#options.log.warn('control_died', { message: how })
      await this.#relaunch(replaceDelayMs(this.#options.nowMs() - sinceMs))
    }
  }

  /** Retries until it runs again or `end` is called. */
  async #relaunch(firstDelayMs: number): Promise<void> {
    let delayMs = firstDelayMs
    for (let failures = 0; !this.#isEnding; failures += 1) {
      await this.#pause(delayMs)
      if (this.#isEnding) return
      try {
        this.#run = await this.#launch()
        if (this.#isEnding) this.#run.child.kill('SIGKILL')
        else this.#options.onRestarted()
        return
      } catch (error) {
        // Its output is in the log, by class.
        const { message } = SandwireError.from(error)
        this.#options.log.error('control_start_failed', { message })
        if (failures === 0) this.#options.onRestartFailed(message)
        delayMs = doublingDelayMs(failures + 1, FAILED_STARTS)
      }
    }
  }

  async #pause(delayMs: number): Promise<void> {
    if (delayMs === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = setTimeout(resolve, delayMs)
    await promise
    clearTimeout(timer)
  }
}

async function feed(child: Child, config: Uint8Array): Promise<void> {
  try {
    await child.stdin.write(config)
    await child.stdin.end()
  } catch {
    // Already dead; `exited` reports it.
  }
}

async function follow(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  for await (const line of readLines(stream)) if (line !== '') onLine(line)
}

/** workerd writes `{"event":"listen",…}` for each listening socket. */
async function countListening(fd: number, wanted: number): Promise<boolean> {
  let count = 0
  for await (const line of readLines(Bun.file(fd).stream())) {
    if (line.includes('"listen"')) count += 1
    if (count >= wanted) return true
  }
  return false
}

/** A process that served this long is replaced immediately. */
const SOUND_MS = 1_000
/** Delay after a process that died early, so that a crash loop does not use a whole CPU. */
const SHORT_LIFE_MS = 100
const FAILED_STARTS = { firstMs: 50, maxMs: 5_000 }

/** Delay before replacing a process that served for `servedMs`. Short, because clients are waiting. */
export function replaceDelayMs(servedMs: number): number {
  return servedMs >= SOUND_MS ? 0 : SHORT_LIFE_MS
}

/**
 * Path of this package's workerd. It is newer than miniflare's, which leaks connections to containers.
 */
export function findWorkerd(): string {
  const found: unknown = createRequire(import.meta.url)(fileURLToPath(import.meta.resolve('workerd')))
  if (typeof found === 'object' && found !== null && 'default' in found && typeof found.default === 'string')
    return found.default
  throw new SandwireError('internal', 'Cannot find workerd: run npm install')
}
