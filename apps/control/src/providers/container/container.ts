import { withTimeout } from '@sandwire/async'
import type { HostHealth, NetworkSpec, SandboxStatus, StartSpec } from '@sandwire/internal-api'
import { SandwireError, SOFTWARE_VERSION, type StopReason } from '@sandwire/protocol'
import type { Provider, UpstreamRequest } from '../provider.ts'
import { sendUpstream, unreachable } from '../upstream.ts'
import type { ContainerRun, ContainerStore, EndReason } from './container-store.ts'
import { isIntercepted } from './open-network.ts'
import { startupEnv } from './startup-env.ts'

/** Port and host name of sandboxd in its container (deploy/sandbox/startup.sh). */
const PORT = 8080
const ORIGIN = 'http://localhost'
/** Includes the time to pull the image. */
const START_TIMEOUT_MS = 90_000
/** Interval of polls until sandboxd listens; it doubles up to the maximum. */
const MIN_POLL_MS = 25
const MAX_POLL_MS = 1_000
/** How long a container may take to exit after SIGTERM; sandboxd ends its processes within 10 s. */
const STOP_TIMEOUT_MS = 15_000
/** Until the engine must have reported why a container ended. */
const END_TIMEOUT_MS = 1_000
const SIGTERM = 15
const ADDRESS = `container:${PORT}`

/** The part of a Durable Object's `ctx.container` that the provider uses. */
export interface ContainerEngine {
  readonly running: boolean
  start(options: ContainerStart): void
  /** Resolves when the container exits with 0; rejects with an error that has the `exitCode` otherwise. */
  monitor(): Promise<void>
  destroy(): Promise<void>
  signal(number: number): void
  getTcpPort(port: number): { fetch(url: string, init: RequestInit): Promise<Response> }
  /** How long the container may live without its object. */
  setInactivityTimeout(durationMs: number): Promise<void>
}

export interface ContainerStart {
  readonly enableInternet: boolean
  readonly env: Record<string, string>
}

/** Why a container ended, from the error of `monitor`. */
function endReasonOf(caught: unknown): EndReason {
  const code: unknown = typeof caught === 'object' && caught !== null ? Reflect.get(caught, 'exitCode') : null
  return typeof code === 'number' ? `exit_${code}` : 'lost'
}

export interface ContainerProviderDependencies {
  readonly engine: ContainerEngine
  readonly store: ContainerStore
  /** Applies the network policy; called before each start and for each new object. */
  readonly openNetwork: (network: NetworkSpec) => Promise<void>
  /** See `NetworkContext`. */
  readonly hasInternet: boolean
  /** Control saves files, so that a container which the platform ends waits for that. */
  readonly savesFiles: boolean
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly mintEpoch: () => string
  /** Keeps the object alive until the work is done. */
  readonly hold: (work: Promise<unknown>) => void
  /** The container ended by itself. */
  readonly onLost: () => void
  /** The engine does not report why the container ended; this object's connection to it may be broken. */
  readonly onStuck: () => void
}

const late = (): Error => new Error('The container does not end')

/** Runs a sandbox in its object's own container. There is one per object, so the ids of all calls are the same. */
export class ContainerProvider implements Provider {
  readonly deliversStopReason = false
  readonly survives = { detach: 'processes', stop: 'nothing', upgrade: 'processes' } as const
  readonly #deps: ContainerProviderDependencies
  #starting: Promise<SandboxStatus> | undefined
  /** Epoch whose end is monitored. */
  #monitored: string | undefined
  /** Resolves when the monitored container has ended. */
  #ended: Promise<void> = Promise.resolve()

  constructor(deps: ContainerProviderDependencies) {
    this.#deps = deps
  }

  start(spec: StartSpec): Promise<SandboxStatus> {
    this.#starting ??= this.#start(spec).finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async status(id: string): Promise<SandboxStatus> {
    const { engine, store } = this.#deps
    const run = store.read()
    const isMonitored = run !== undefined && run.endReason === undefined && run.epoch === this.#monitored
    // The engine is about to report why it ended.
    if (isMonitored && !engine.running)
      await withTimeout(this.#ended, END_TIMEOUT_MS, late).catch(() => undefined)
    return this.#read(id)
  }

  async stop(id: string, _requestId: string, reason: StopReason = 'requested'): Promise<SandboxStatus> {
    const { engine, store } = this.#deps
    const run = store.read()
    if (engine.running && run !== undefined) {
      this.#monitor(run)
      store.end(run.epoch, reason)
      engine.signal(SIGTERM)
      await withTimeout(this.#ended, STOP_TIMEOUT_MS, late).catch(() => undefined)
      this.#log('stopped', reason)
    }
    await this.#remove()
    return this.#read(id)
  }

  async destroy(): Promise<void> {
    const { store } = this.#deps
    const run = store.read()
    if (run !== undefined) store.end(run.epoch, 'removed')
    await this.#remove()
    store.clear()
  }

  /** Ends the container, because its connections cannot be closed from outside. Called when sandboxd did not close them. */
  async disconnectAll(): Promise<void> {
    const { store } = this.#deps
    const run = store.read()
    if (run !== undefined) store.end(run.epoch, 'disconnect_failed')
    this.#log('disconnect_failed')
    await this.#remove()
  }

  async renew(_id: string, forMs: number): Promise<void> {
    const { engine, store } = this.#deps
    const run = store.read()
    if (!engine.running || run === undefined || run.endReason !== undefined) return
    await this.#adopt(run)
    await engine.setInactivityTimeout(forMs)
  }

  async logs(_id: string, maxBytes: number): Promise<string> {
    return this.#deps.store.lines(maxBytes)
  }

  async health(): Promise<HostHealth> {
    return containerHealth()
  }

  async fetch(address: string, request: UpstreamRequest): Promise<Response> {
    const { engine, store } = this.#deps
    const run = store.read()
    if (address !== ADDRESS || !engine.running || run === undefined || run.endReason !== undefined)
      throw unreachable()
    return sendUpstream(async (path, init) => {
      await this.#adopt(run)
      return this.#request(path, init)
    }, request)
  }

  async #start(spec: StartSpec): Promise<SandboxStatus> {
    const { engine, store, openNetwork, hasInternet, savesFiles, nowMs, mintEpoch } = this.#deps
    const before = store.read()
    if (engine.running && before !== undefined && before.endReason === undefined) {
      await this.#adopt(before)
      await this.#waitUntilListening()
      return this.#read(spec.id)
    }
    // A container without a stored run is stale; and Docker restarts a failed one although it counts as ended.
    await this.#remove()
    await openNetwork(spec.network).catch((caught: unknown) => this.#networkLost(caught))
    const run = { epoch: mintEpoch(), startedMs: nowMs(), network: spec.network }
    store.begin(run)
    engine.start({
      enableInternet: spec.network.policy === 'open' && hasInternet,
      env: startupEnv(spec, { isIntercepted: isIntercepted(spec.network, hasInternet), savesFiles }),
    })
    this.#log('started')
    this.#monitor(run)
    await this.#waitUntilListening()
    return this.#read(spec.id)
  }

  /** The engine was restarted: what intercepts the requests of the container is gone, and only a new object can connect to it. */
  #networkLost(cause: unknown): never {
    this.#log('network_lost')
    this.#deps.onStuck()
    throw new SandwireError('sandbox_failed', 'The network of the sandbox cannot be set up: try again', {
      cause,
    })
  }

  /** Waits until sandboxd responds at all. */
  async #waitUntilListening(): Promise<void> {
    const { engine, sleep, nowMs } = this.#deps
    const deadlineMs = nowMs() + START_TIMEOUT_MS
    for (let waitMs = MIN_POLL_MS; nowMs() < deadlineMs; waitMs = Math.min(waitMs * 2, MAX_POLL_MS)) {
      if (!engine.running) throw await this.#endedEarly()
      try {
        const response = await withTimeout(this.#request('/healthz', {}), MAX_POLL_MS, unreachable)
        await response.body?.cancel()
        return
      } catch {
        // Not listening yet.
        await sleep(waitMs)
      }
    }
    await this.#remove()
    throw new SandwireError('sandbox_failed', 'The sandbox did not start in time')
  }

  /** The error for a container that ended before sandboxd listened. */
  async #endedEarly(): Promise<SandwireError> {
    await withTimeout(this.#ended, END_TIMEOUT_MS, late).catch(() => undefined)
    const { store, onStuck } = this.#deps
    const reason = store.read()?.endReason
    if (reason === 'lost') onStuck()
    const suffix = reason === undefined ? '' : `: ${reason}`
    return new SandwireError('sandbox_failed', `The sandbox ended while it was starting${suffix}`)
  }

  #request(path: string, init: RequestInit): Promise<Response> {
    return this.#deps.engine.getTcpPort(PORT).fetch(`${ORIGIN}${path}`, init)
  }

  #read(id: string): SandboxStatus {
    const { engine, store } = this.#deps
    const run = store.read()
    if (run === undefined) return { id, state: 'absent' }
    const { epoch, startedMs, endReason } = run
    if (engine.running && endReason === undefined)
      return { id, state: 'running', address: ADDRESS, epoch, startedMs }
    // It ended while no object monitored it.
    if (endReason === undefined) store.end(epoch, 'lost')
    const reason = endReason ?? 'lost'
    return reason === 'requested' ? { id, state: 'stopped' } : { id, state: 'stopped', reason }
  }

  async #remove(): Promise<void> {
    if (this.#deps.engine.running) await this.#deps.engine.destroy()
  }

  /** Takes over a container that an earlier object started: its monitor and network policy ended with that object. */
  async #adopt(run: ContainerRun): Promise<void> {
    if (this.#monitored === run.epoch) return
    this.#monitor(run)
    await this.#deps.openNetwork(run.network)
  }

  /** Waits for the container's end, once per start. */
  #monitor({ epoch }: ContainerRun): void {
    if (this.#monitored === epoch) return
    this.#monitored = epoch
    const { engine, store, hold, onLost } = this.#deps
    const onEnd = (reason: EndReason): void => {
      const isExpected = store.read()?.endReason !== undefined
      store.end(epoch, reason)
      if (isExpected) return
      this.#log('ended', reason)
      onLost()
    }
    this.#ended = engine.monitor().then(
      () => onEnd('exit_0'),
      (caught: unknown) => onEnd(endReasonOf(caught)),
    )
    hold(this.#ended)
  }

  #log(event: string, reason?: EndReason): void {
    const { store, nowMs } = this.#deps
    const time = new Date(nowMs()).toISOString()
    store.addLine(JSON.stringify({ time, source: 'container', event, reason }))
  }
}

/** Health of the provider; the state of a container is known to its object only. */
export function containerHealth(): HostHealth {
  return { status: 'ok', version: SOFTWARE_VERSION, isolation: 'container', sandboxes: 0 }
}
