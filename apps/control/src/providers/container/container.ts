import { withTimeout } from '@sandwire/async'
import type { HostHealth, NetworkSpec, SandboxStatus, StartSpec } from '@sandwire/internal-api'
import { SandwireError, SOFTWARE_VERSION } from '@sandwire/protocol'
import type { Provider, UpstreamRequest } from '../provider.ts'
import { sendUpstream, unreachable } from '../upstream.ts'
import type { ContainerRun, ContainerStore } from './container-store.ts'
import { type Engine, reasonOfEnd } from './engine.ts'
import { isLed } from './open-network.ts'
import { startupEnv } from './startup-env.ts'

/** Where sandboxd listens in its container, and the name it answers to (deploy/sandbox/startup.sh). */
const PORT = 8080
const ORIGIN = 'http://localhost'
/** A cold image is fetched before it starts. */
const START_TIMEOUT_MS = 90_000
/** Between two looks whether sandboxd listens, doubling up to the second one. */
const MIN_LOOK_MS = 25
const MAX_LOOK_MS = 1_000
/** How long a container may take to end when it is asked to; sandboxd ends its own within 10 s. */
const STOP_TIMEOUT_MS = 15_000
/** Until it is known how a container ended that is seen to have. */
const END_TIMEOUT_MS = 1_000
const SIGTERM = 15
const ADDRESS = `container:${PORT}`

export interface ContainerProviderDependencies {
  readonly engine: Engine
  readonly store: ContainerStore
  /** Lets what the sandbox may reach, and nothing else, through; before it starts, and for each new object. */
  readonly openNetwork: (network: NetworkSpec) => Promise<void>
  /** As `Surroundings` says. */
  readonly hasInternet: boolean
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly mintEpoch: () => string
  /** Keeps the object alive until this is over. */
  readonly hold: (work: Promise<unknown>) => void
  /** The container ended although nobody asked it to. */
  readonly onLost: () => void
  /** The engine did not even say how the container ended; it may have lost sight of what it needs, for as long as this object lives. */
  readonly onStuck: () => void
}

const late = (): Error => new Error('It does not end')

/** Makes a sandbox of its object's own container. There is one per object, so the ids of the calls are all the same. */
export class ContainerProvider implements Provider {
  readonly survives = { detach: 'processes', stop: 'nothing', upgrade: 'processes' } as const
  readonly #deps: ContainerProviderDependencies
  #starting: Promise<SandboxStatus> | undefined
  /** Epoch whose end is waited for. */
  #watched: string | undefined
  /** Settles when the container that is watched has ended. */
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
    const isWatched = run !== undefined && run.end === undefined && run.epoch === this.#watched
    // How it ended is about to be told.
    if (isWatched && !engine.running)
      await withTimeout(this.#ended, END_TIMEOUT_MS, late).catch(() => undefined)
    return this.#read(id)
  }

  async stop(id: string): Promise<SandboxStatus> {
    const { engine, store } = this.#deps
    const run = store.read()
    if (engine.running && run !== undefined) {
      this.#watch(run)
      store.end(run.epoch, '')
      engine.signal(SIGTERM)
      await withTimeout(this.#ended, STOP_TIMEOUT_MS, late).catch(() => undefined)
      this.#note('stopped')
    }
    await this.#remove()
    return this.#read(id)
  }

  async destroy(): Promise<void> {
    const { store } = this.#deps
    const run = store.read()
    if (run !== undefined) store.end(run.epoch, '')
    await this.#remove()
    store.clear()
  }

  /**
   * Nothing outside a container can cut its connections one by one, so the container ends. It is asked for only when
   * sandboxd does not do what it is told.
   */
  async sever(): Promise<void> {
    const { store } = this.#deps
    const run = store.read()
    if (run !== undefined) store.end(run.epoch, 'severed')
    this.#note('severed')
    await this.#remove()
  }

  async renew(_id: string, forMs: number): Promise<void> {
    const { engine, store } = this.#deps
    const run = store.read()
    if (!engine.running || run === undefined || run.end !== undefined) return
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
    if (address !== ADDRESS || !engine.running || run === undefined || run.end !== undefined)
      throw unreachable()
    return sendUpstream(async (path, init) => {
      await this.#adopt(run)
      return this.#ask(path, init)
    }, request)
  }

  async #start(spec: StartSpec): Promise<SandboxStatus> {
    const { engine, store, openNetwork, hasInternet, nowMs, mintEpoch } = this.#deps
    const before = store.read()
    if (engine.running && before !== undefined && before.end === undefined) {
      await this.#adopt(before)
      await this.#listening()
      return this.#read(spec.id)
    }
    // One that nobody remembers is nobody's; and Docker starts again what failed, although it counts as ended.
    await this.#remove()
    await openNetwork(spec.network)
    const run = { epoch: mintEpoch(), startedMs: nowMs(), network: spec.network }
    store.begin(run)
    engine.start({
      enableInternet: spec.network.policy === 'open' && hasInternet,
      env: startupEnv(spec, isLed(spec.network, hasInternet)),
    })
    this.#note('started')
    this.#watch(run)
    await this.#listening()
    return this.#read(spec.id)
  }

  /** Waits until sandboxd answers anything at all. */
  async #listening(): Promise<void> {
    const { engine, sleep, nowMs } = this.#deps
    const deadlineMs = nowMs() + START_TIMEOUT_MS
    for (let waitMs = MIN_LOOK_MS; nowMs() < deadlineMs; waitMs = Math.min(waitMs * 2, MAX_LOOK_MS)) {
      if (!engine.running) throw await this.#endedEarly()
      try {
        const response = await withTimeout(this.#ask('/healthz', {}), MAX_LOOK_MS, unreachable)
        await response.body?.cancel()
        return
      } catch {
        // Not yet; whether it ever will is told by the time.
        await sleep(waitMs)
      }
    }
    await this.#remove()
    throw new SandwireError('sandbox_failed', 'The sandbox did not start in time')
  }

  /** What there is to say of a container that never got as far as sandboxd. */
  async #endedEarly(): Promise<SandwireError> {
    await withTimeout(this.#ended, END_TIMEOUT_MS, late).catch(() => undefined)
    const { store, onStuck } = this.#deps
    const how = store.read()?.end ?? ''
    if (how === 'lost') onStuck()
    const why = how === '' ? '' : `: ${how}`
    return new SandwireError('sandbox_failed', `The sandbox ended while it was starting${why}`)
  }

  #ask(path: string, init: RequestInit): Promise<Response> {
    return this.#deps.engine.getTcpPort(PORT).fetch(`${ORIGIN}${path}`, init)
  }

  #read(id: string): SandboxStatus {
    const { engine, store } = this.#deps
    const run = store.read()
    if (run === undefined) return { id, state: 'absent' }
    const { epoch, startedMs, end } = run
    if (engine.running && end === undefined)
      return { id, state: 'running', address: ADDRESS, epoch, startedMs }
    // It ended while nobody watched.
    if (end === undefined) store.end(epoch, 'lost')
    const reason = end ?? 'lost'
    return reason === '' ? { id, state: 'stopped' } : { id, state: 'stopped', reason }
  }

  async #remove(): Promise<void> {
    if (this.#deps.engine.running) await this.#deps.engine.destroy()
  }

  /** Takes over a container that was there before its object was: what the runtime knew of it went with the last one. */
  async #adopt(run: ContainerRun): Promise<void> {
    if (this.#watched === run.epoch) return
    this.#watch(run)
    await this.#deps.openNetwork(run.network)
  }

  /** Waits for the container's end, once per start. */
  #watch({ epoch }: ContainerRun): void {
    if (this.#watched === epoch) return
    this.#watched = epoch
    const { engine, store, hold, onLost } = this.#deps
    const ended = (reason: string): void => {
      const wasAsked = store.read()?.end !== undefined
      store.end(epoch, reason)
      if (wasAsked) return
      this.#note(reason)
      onLost()
    }
    this.#ended = engine.monitor().then(
      () => ended('exit_0'),
      (caught: unknown) => ended(reasonOfEnd(caught)),
    )
    hold(this.#ended)
  }

  #note(event: string): void {
    const { store, nowMs } = this.#deps
    store.note(JSON.stringify({ time: new Date(nowMs()).toISOString(), source: 'container', event }))
  }
}

/** How containers are, as far as anybody outside an object can know. */
export function containerHealth(): HostHealth {
  return { status: 'ok', version: SOFTWARE_VERSION, isolation: 'container', sandboxes: 0 }
}
