import type { NetworkSpec } from '@sandwire/internal-api'
import { TokenBucket } from '@sandwire/protocol'
import { readLines } from '../read-lines.ts'
import { LOG_BURST, LOG_PER_SECOND, parseEgressMessage } from './egress-messages.ts'
import type { EgressLog } from './egress-proxy.ts'

/** Time to start; longer means a hang. */
const READY_MS = 15_000
/** Pause before a process that ended is replaced. */
const RESTART_MS = 1_000

/** A started process, and where it listens as it sees it. */
export interface EgressLaunch {
  readonly child: Bun.Subprocess<'pipe', 'pipe', 'ignore'>
  readonly socketPath: string
}

export interface EgressProcessOptions {
  /** Starts the program. It has no privileges, because it parses a sandbox's bytes. */
  readonly launch: () => Promise<EgressLaunch>
  readonly network: NetworkSpec
  readonly log: EgressLog
}

/** The egress proxy of one sandbox in a process of its own, which is replaced when it ends. */
class EgressProcess implements AsyncDisposable {
  readonly #options: EgressProcessOptions
  readonly #logBucket = new TokenBucket(LOG_PER_SECOND, LOG_BURST, performance.now())
  #child: EgressLaunch['child'] | undefined
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: EgressProcessOptions) {
    this.#options = options
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    const { child, socketPath } = await this.#options.launch()
    this.#child = child
    const ready = Promise.withResolvers<void>()
    const timer = setTimeout(() => ready.reject(new Error('The egress proxy is not ready in time')), READY_MS)
    void this.#follow(child, ready.resolve).catch(() => undefined)
    void child.exited.then((code) => ready.reject(new Error(`The egress proxy ended with ${code}`)))
    try {
      await child.stdin.write(`${JSON.stringify({ socketPath, network: this.#options.network })}\n`)
      await child.stdin.flush()
      await ready.promise
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    } finally {
      clearTimeout(timer)
    }
    void child.exited.then(() => this.#restart())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#child?.kill('SIGKILL')
    await this.#child?.exited
  }

  #restart(): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.start().catch(() => this.#restart()), RESTART_MS)
    this.#timer.unref()
  }

  async #follow(child: EgressLaunch['child'], onReady: () => void): Promise<void> {
    for await (const line of readLines(child.stdout)) {
      const message = parseEgressMessage(line)
      if (message?.type === 'ready') onReady()
      if (message?.type !== 'blocked' || !this.#logBucket.take(1, performance.now())) continue
      const { host, port, reason } = message
      this.#options.log.warn('egress_blocked', { host, port, reason })
    }
  }
}

/** Opens the egress proxy of one sandbox. Throws when it cannot start. */
export async function openEgressProcess(options: EgressProcessOptions): Promise<AsyncDisposable> {
  const opened = new EgressProcess(options)
  await opened.start()
  return opened
}
