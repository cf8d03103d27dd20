import { closeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { SandwireError } from '@sandwire/protocol'
import { identifyProcess, type ProcessIdentity } from '../data/process-identity.ts'
import type { Log } from '../log.ts'
import { readLines } from '../read-lines.ts'
import { closeConnections } from '../slots/close-connections.ts'

/** A cold start on a loaded machine takes seconds; longer than this it hangs. */
const READY_TIMEOUT_MS = 30_000
/** Time for whoever stopRequested for a cut to hear that it comes, where only the end of workerd cuts. */
const KILL_DELAY_MS = 100
/** Lines of workerd's last words that are kept to explain a start that failed. */
const MAX_LAST_LINES = 20

export interface WorkerdOptions {
  /** The executable. */
  readonly program: string
  /** Encoded configuration. It travels by pipe: it holds keys. */
  readonly config: Uint8Array
  /** How many sockets must listen before it counts as ready. */
  readonly sockets: number
  /** Told of every process before it is given its configuration, so that an orphan is always known. */
  readonly onProcess: (identity: ProcessIdentity) => void
  /** Told of every line it prints. */
  readonly onLine: (line: string) => void
  /** Told when it serves again after it had died. */
  readonly onRestarted: () => void
  /** Told when the first try to start it again fails. */
  readonly onRestartFailed: (message: string) => void
  readonly log: Log
  readonly nowMs: () => number
}

type Child = Bun.Subprocess<'pipe', 'pipe', 'pipe'>

/** What became of a process: `serving` ends in `exited`; one that never served says why. */
interface Run {
  readonly child: Child
  readonly exited: Promise<string>
}

/** Control's runtime. It comes back by itself, on the same ports, whenever it dies before `end`. */
export class Workerd {
  readonly #options: WorkerdOptions
  #run: Run | undefined
  #isEnding = false
  /** Ends a pause between two tries early. */
  #wake: () => void = () => undefined
  #watch: Promise<void> = Promise.resolve()

  private constructor(options: WorkerdOptions) {
    this.#options = options
  }

  /** Starts it and waits until it listens; a first start that fails is an error, later ones are tried again. */
  static async start(options: WorkerdOptions): Promise<Workerd> {
    const workerd = new Workerd(options)
    workerd.#run = await workerd.#launch()
    workerd.#watch = workerd.#superviseProcess()
    return workerd
  }

  /** Takes no more requests; connections that are open go on. New ones wait in the kernel and are refused at `end`. */
  stopListening(): void {
    this.#isEnding = true
    this.#run?.child.kill('SIGTERM')
  }

  /**
   * Cuts its connections to unix sockets but for those whose listener is kept; clients connect again. Where the machine
   * does not let us, it is killed for that in a moment, and comes back.
   */
  closeSandboxConnections(exceptPids: ReadonlySet<number>, close = closeConnections): void {
    const child = this.#run?.child
    if (child === undefined) return
    // Its pipes to this process are sockets too.
    if (close(child.pid, new Set([...exceptPids, process.pid, child.pid]))) return
    this.#options.log.warn('control_killed_to_cut', { pid: child.pid })
    setTimeout(() => child.kill('SIGKILL'), KILL_DELAY_MS)
  }

  /** Kills it and waits for nothing. */
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
    const { program, config } = this.#options
    const child: Child = Bun.spawn([program, 'serve', '--binary', '--control-fd=3', '-'], {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      env: { TZ: 'UTC' },
      // A session of its own: Ctrl-C in the terminal is for the host, which ends this in order.
      detached: true,
    })
    const lastLines: string[] = []
    const hear = (line: string): void => {
      lastLines.push(line)
      if (lastLines.length > MAX_LAST_LINES) lastLines.shift()
      this.#options.onLine(line)
    }
    const heard = Promise.allSettled([follow(child.stdout, hear), follow(child.stderr, hear)])
    const exited = child.exited.then((code): string => String(child.signalCode ?? `exit ${code}`))
    const identity = identifyProcess(child.pid)
    if (identity !== undefined) this.#options.onProcess(identity)
    await feed(child, config)
    const isReady = await this.#isListening(child, exited)
    if (isReady) return { child, exited }
    child.kill('SIGKILL')
    const how = await exited
    await heard
    throw new SandwireError('provider_unavailable', `Cannot run control: workerd did not start (${how})`, {
      // Addresses in its code help nobody here.
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

  /** Tries until it runs again or is not wanted any more. */
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
        // Its last words are in the log as far as they may be: by their kind.
        const { message } = SandwireError.from(error)
        this.#options.log.error('control_start_failed', { message })
        if (failures === 0) this.#options.onRestartFailed(message)
        delayMs = retryDelayMs(failures)
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
    // It died already, which its exit tells.
  }
}

async function follow(stream: ReadableStream<Uint8Array>, hear: (line: string) => void): Promise<void> {
  for await (const line of readLines(stream)) if (line !== '') hear(line)
}

/** Workerd says `{"event":"listen",…}` once for every socket that listens. */
async function countListening(fd: number, wanted: number): Promise<boolean> {
  let count = 0
  for await (const line of readLines(Bun.file(fd).stream())) {
    if (line.includes('"listen"')) count += 1
    if (count >= wanted) return true
  }
  return false
}

/** One that served this long was sound: its death is answered at once. */
const SOUND_MS = 1_000
/** Wait after the death of one that served for a moment, so that a problem at every start does not use up a processor. */
const SHORT_LIFE_MS = 100
const FIRST_MS = 50
const LONGEST_MS = 5_000

/** How long to wait before replacing one that served for `servedMs`. Clients are waiting, so it is never long. */
export function replaceDelayMs(servedMs: number): number {
  return servedMs >= SOUND_MS ? 0 : SHORT_LIFE_MS
}

/** How long to wait after a start that failed, the more in a row the longer. */
export function retryDelayMs(failures: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures, 16))
}

/**
 * The executable of the workerd that this package names: a newer one than miniflare's, which keeps every connection to a container
 * open after it was closed.
 */
export function findWorkerd(): string {
  const found: unknown = createRequire(import.meta.url)(fileURLToPath(import.meta.resolve('workerd')))
  if (typeof found === 'object' && found !== null && 'default' in found && typeof found.default === 'string')
    return found.default
  throw new SandwireError('internal', 'Cannot find workerd: run npm install')
}
