import { withTimeout } from '@sandwire/async'
import type { HostHealth, SandboxStatus, StartSpec } from '@sandwire/internal-api'
import { SandwireError, SOFTWARE_VERSION, type StopReason, SUBPROTOCOL } from '@sandwire/protocol'
import type { ContainerRun, ContainerStore } from '../container/container-store.ts'
import { startupEnv } from '../container/startup-env.ts'
import type { Provider, ProviderCheckpoints, UpstreamRequest } from '../provider.ts'
import { sendUpstream, unreachable } from '../upstream.ts'
import type { Service, SpritesApi, SpritesSettings } from './api.ts'
import type { ByteDuplex } from './byte-duplex.ts'
import { openCheckpoints } from './checkpoints.ts'
import { SpritesError } from './errors.ts'
import { SANDBOXD_HOST, sendHttp } from './http-client.ts'
import {
  CLAUDE_PROFILE,
  CLAUDE_PROFILE_TEXT,
  INSTALL_COMMAND,
  PROGRAM,
  SERVICE,
  SHELL_PROFILE,
  SHELL_PROFILE_TEXT,
  START_SCRIPT,
  START_SCRIPT_TEXT,
} from './layout.ts'
import type { ExecStore } from './exec-store.ts'
import { ExecSessions, type ExecSessionsDependencies } from './exec-sessions.ts'
import { openTunnel, type ServiceTarget, type TunnelDependencies } from './tunnel.ts'
import { UpgradeRefused, WebSocketClient } from './websocket-client.ts'

/** Waking a cold sprite and starting sandboxd. */
const START_TIMEOUT_MS = 60_000
/** Interval of polls until sandboxd listens; it doubles up to the maximum. */
const MIN_POLL_MS = 50
const MAX_POLL_MS = 1_000
/** Until sandboxd must respond to one poll. */
const POLL_TIMEOUT_MS = 5_000
/** Connections into one sprite at a time. */
const MAX_CONNECTIONS = 512
const LOG_LINES = 1_000

export interface SpritesOptions extends SpritesSettings {
  /** The one sprite to use, which is never created or destroyed; absent: each sandbox has its own. */
  readonly spriteName?: string
  readonly service: ServiceTarget & {
    /** In front of every path of sandboxd; empty: none. */
    readonly path: string
  }
  /** Where sprites download sandboxd from, and its SHA-256; absent with `spriteName`. */
  readonly program?: { readonly url: string; readonly sha256: string }
}

export interface SpritesProviderDependencies
  extends
    CheckDependencies,
    Pick<ExecSessionsDependencies, 'acceptClient' | 'hold' | 'wakeBy' | 'yieldTurn' | 'mintId' | 'log'> {
  readonly options: SpritesOptions
  readonly api: SpritesApi
  readonly store: ContainerStore
  /** Its sessions of the exec API in the object's database. */
  readonly execs: ExecStore
  /** Id of the sandbox. */
  readonly sandbox: () => string
  readonly savesFiles: boolean
  readonly sleep: (ms: number) => Promise<void>
  readonly mintEpoch: () => string
  /** Returns a WebSocket that is relayed as a response; `register` adds what closes it. */
  readonly acceptSocket: (socket: WebSocketClient, options: AcceptOptions) => Response
  readonly count: (metric: string, labels: Readonly<Record<string, string>>, by?: number) => void
}

export interface AcceptOptions {
  /** The protocol bounds what is in flight. */
  readonly hasWindows: boolean
  /** Called with what closes the connection; returns what to call when it has ended. */
  readonly register: (close: () => void) => () => void
}

/** Runs a sandbox in a sprite, in which sandboxd is a service. There is one sandbox per object, so the ids of all calls are the same. */
export class SpritesProvider implements Provider {
  readonly deliversStopReason = false
  readonly survives = { detach: 'processes', stop: 'files', upgrade: 'processes' } as const
  readonly checkpoints: ProviderCheckpoints
  readonly execSessions: ExecSessions
  readonly #deps: SpritesProviderDependencies
  readonly #connections = new Set<() => void>()
  #starting: Promise<SandboxStatus> | undefined

  constructor(deps: SpritesProviderDependencies) {
    this.#deps = deps
    this.checkpoints = openCheckpoints(deps.api, (id) => this.#spriteOf(id))
    const { options: settings, execs, sandbox } = deps
    this.execSessions = new ExecSessions({
      ...deps,
      settings,
      store: execs,
      sprite: () => this.#spriteOf(sandbox()),
      register: (close) => this.#register(close),
    })
  }

  start(spec: StartSpec): Promise<SandboxStatus> {
    this.#starting ??= this.#start(spec).finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  /** A warm sprite is frozen and continues with the next request, so it counts as running; the processes of a cold one are gone. */
  async status(id: string): Promise<SandboxStatus> {
    const { api, store } = this.#deps
    const run = store.read()
    if (run === undefined) return { id, state: 'absent' }
    if (run.endReason !== undefined) return stopped(id, run.endReason)
    const sprite = this.#spriteOf(id)
    const status = await api.sprite(sprite)
    const service = status === undefined || status === 'cold' ? undefined : await api.service(sprite, SERVICE)
    if (service === undefined || !isOurs(service, run) || !isAlive(service)) {
      store.end(run.epoch, status === 'cold' ? 'cold' : 'lost')
      if (status === undefined || status === 'cold') this.execSessions.clear()
      return stopped(id, store.read()?.endReason ?? 'lost')
    }
    return this.#running(id, run, service)
  }

  async stop(id: string, _requestId: string, reason: StopReason = 'requested'): Promise<SandboxStatus> {
    const { api, store } = this.#deps
    const run = store.read()
    if (run === undefined) return { id, state: 'absent' }
    if (run.endReason === undefined) {
      await this.execSessions.endAll()
      await api.deleteService(this.#spriteOf(id), SERVICE)
      store.end(run.epoch, reason)
      this.#log('stopped', reason)
    }
    this.#closeAll()
    return stopped(id, store.read()?.endReason ?? reason)
  }

  /** Files of the operator's own sprite stay. */
  async destroy(id: string): Promise<void> {
    const { api, store, options } = this.#deps
    if (options.spriteName === undefined) await api.destroy(this.#spriteOf(id))
    else if (store.read() !== undefined) {
      await this.execSessions.endAll()
      await api.deleteService(options.spriteName, SERVICE)
    }
    this.#closeAll()
    this.execSessions.clear()
    store.clear()
  }

  async disconnectAll(): Promise<void> {
    this.#closeAll()
  }

  async renew(): Promise<void> {
    // A sprite decides by itself when to freeze; what is attached keeps it awake.
  }

  async logs(id: string, maxBytes: number): Promise<string> {
    const { api, store } = this.#deps
    const own = store.lines(maxBytes)
    if (store.read() === undefined) return own
    const lines = await api.serviceLogs(this.#spriteOf(id), SERVICE, LOG_LINES)
    return lines === '' ? own : `${own}${lines}\n`.slice(-maxBytes)
  }

  async health(): Promise<HostHealth> {
    await checkSprites(this.#deps.options, this.#deps.api, this.#deps)
    return spritesHealth()
  }

  async fetch(address: string, request: UpstreamRequest): Promise<Response> {
    const run = this.#deps.store.read()
    const sprite = this.#parseAddress(address)
    if (run === undefined || run.endReason !== undefined || sprite === undefined) throw unreachable()
    return sendUpstream(() => this.#send(sprite, request), request)
  }

  /** Opens a connection of its own for each request. */
  async #send(sprite: string, request: UpstreamRequest): Promise<Response> {
    const { count, nowMs } = this.#deps
    const startedMs = nowMs()
    let status = 'failed'
    try {
      const response = await this.#request(sprite, request)
      status = String(response.status)
      return response
    } finally {
      count('sandwire_sprites_requests_total', { status })
      count('sandwire_sprites_request_seconds_total', {}, (nowMs() - startedMs) / 1000)
    }
  }

  async #request(sprite: string, request: UpstreamRequest): Promise<Response> {
    const { options, acceptSocket } = this.#deps
    const duplex = await this.#connect(sprite)
    const { upgrade, ...headers } = request.headers
    if (upgrade === undefined) return sendHttp(duplex, options.service.path, request)
    const hasWindows = headers['sec-websocket-protocol'] === SUBPROTOCOL
    const target = `${options.service.path}${request.path}`
    if (!hasWindows && request.path.startsWith('/attach')) {
      duplex.close()
      throw new SandwireError(
        'needs_v1',
        'Cannot attach to this sandbox without the sandwire.v1 subprotocol: other clients cannot be slowed down',
      )
    }
    try {
      const socket = await WebSocketClient.open(duplex, { host: SANDBOXD_HOST, target, headers }, this.#deps)
      const register = (close: () => void): (() => void) => this.#register(close)
      return acceptSocket(socket, { hasWindows, register })
    } catch (error) {
      // The refusal of sandboxd, which control turns into its own.
      if (error instanceof UpgradeRefused && error.status >= 400)
        return new Response(error.body, { status: error.status })
      throw error
    }
  }

  /** A connection to sandboxd that `disconnectAll` closes. */
  async #connect(sprite: string): Promise<ByteDuplex> {
    const { options } = this.#deps
    if (this.#connections.size >= MAX_CONNECTIONS)
      throw new SandwireError('rate_limited', 'Too many connections to this sandbox')
    const tunnel = await openTunnel(options, sprite, options.service, this.#deps)
    const unregister = this.#register(() => tunnel.close())
    const close = (): void => {
      unregister()
      tunnel.close()
    }
    return { ...tunnel, close }
  }

  #register(close: () => void): () => void {
    this.#connections.add(close)
    return () => void this.#connections.delete(close)
  }

  #closeAll(): void {
    for (const close of this.#connections) close()
    this.#connections.clear()
  }

  async #start(spec: StartSpec): Promise<SandboxStatus> {
    const { api, store, nowMs, mintEpoch, savesFiles, options, count } = this.#deps
    const startedMs = nowMs()
    const sprite = this.#spriteOf(spec.id)
    await this.#ensureSprite(sprite)
    const before = store.read()
    const known = await api.service(sprite, SERVICE)
    const isRunning =
      before !== undefined &&
      before.endReason === undefined &&
      known !== undefined &&
      isOurs(known, before) &&
      isAlive(known)
    if (!isRunning) {
      await this.#install(sprite)
      const run = { epoch: mintEpoch(), startedMs, network: spec.network }
      store.begin(run)
      await api.putService(sprite, SERVICE, {
        cmd: '/bin/sh',
        args: [START_SCRIPT],
        env: {
          ...startupEnv(spec, { isIntercepted: false, savesFiles }),
          SANDWIRE_PORT: String(options.service.port),
          [EPOCH]: run.epoch,
        },
      })
      this.#log('started')
    }
    await this.#waitUntilListening(sprite)
    count('sandwire_sprites_ready_seconds_total', {}, (nowMs() - startedMs) / 1000)
    count('sandwire_sprites_ready_total', {})
    return this.status(spec.id)
  }

  async #ensureSprite(sprite: string): Promise<void> {
    const { api, options } = this.#deps
    if ((await api.sprite(sprite)) !== undefined) return
    if (options.spriteName !== undefined) throw new SpritesError('sprite_not_found')
    await api.create(sprite)
  }

  /** Writes the start script and missing profiles; a sprite of its own downloads sandboxd. */
  async #install(sprite: string): Promise<void> {
    const { api, options } = this.#deps
    const { program } = options
    await api.writeFile(sprite, START_SCRIPT, START_SCRIPT_TEXT, '0755')
    for (const [profile, text] of PROFILES)
      if (!(await api.hasFile(sprite, profile))) await api.writeFile(sprite, profile, text, '0755')
    if (await api.hasFile(sprite, PROGRAM)) return
    if (program === undefined) throw new SpritesError('bad_path')
    const code = await api.run(sprite, ['sh', '-c', INSTALL_COMMAND, 'install', program.url, program.sha256])
    if (code !== 0)
      throw new SandwireError(
        'sandbox_failed',
        'Cannot start the sandbox: its sprite could not download sandboxd; check SPRITES_SANDBOXD_URL and SPRITES_SANDBOXD_SHA256',
      )
  }

  async #waitUntilListening(sprite: string): Promise<void> {
    const { sleep, nowMs, options, count } = this.#deps
    const deadlineMs = nowMs() + START_TIMEOUT_MS
    for (let waitMs = MIN_POLL_MS; ; waitMs = Math.min(waitMs * 2, MAX_POLL_MS)) {
      try {
        const response = await withTimeout(
          pollHealth(options, sprite, this.#deps),
          POLL_TIMEOUT_MS,
          unreachable,
        )
        if (response === 200) return
      } catch (error) {
        if (error instanceof SpritesError && error.problem !== 'unreachable') throw error
      }
      if (nowMs() >= deadlineMs) break
      await sleep(waitMs)
    }
    count('sandwire_sprites_ready_failures_total', { reason: 'timed_out' })
    throw new SandwireError(
      'sandbox_failed',
      'The sandbox did not start in time: its service does not respond',
    )
  }

  #running(id: string, run: ContainerRun, { process }: Service): SandboxStatus {
    // The API restarts a service that ended, whose processes are then gone.
    const epoch = `${run.epoch}-${process.replaceAll(/[^0-9A-Za-z]/g, '')}`
    const address = `${ADDRESS_PREFIX}${this.#spriteOf(id)}`
    return { id, state: 'running', address, epoch, startedMs: run.startedMs }
  }

  /** The sprite at an address of this provider. */
  #parseAddress(address: string): string | undefined {
    const { spriteName } = this.#deps.options
    if (!address.startsWith(ADDRESS_PREFIX)) return undefined
    const sprite = address.slice(ADDRESS_PREFIX.length)
    return (spriteName === undefined ? OWN_SPRITE.test(sprite) : sprite === spriteName) ? sprite : undefined
  }

  #spriteOf(id: string): string {
    return this.#deps.options.spriteName ?? `sandwire-${id}`
  }

  #log(event: string, reason?: string): void {
    const { store, nowMs } = this.#deps
    const time = new Date(nowMs()).toISOString()
    store.addLine(JSON.stringify({ time, source: 'sprites', event, reason }))
  }
}

/** Commands that are started by the exec API. The operator's own are kept. */
const PROFILES = [
  [SHELL_PROFILE, SHELL_PROFILE_TEXT],
  [CLAUDE_PROFILE, CLAUDE_PROFILE_TEXT],
] as const

const ADDRESS_PREFIX = 'sprite:'
/** A sprite that was made for a sandbox. */
const OWN_SPRITE = /^sandwire-[0-9a-z]{1,64}$/

/** Variable of the service that names the start it belongs to. */
const EPOCH = 'SANDWIRE_EPOCH'

/** False: another start defined the service. A service whose environment is not reported counts as ours. */
function isOurs({ env }: Service, { epoch }: ContainerRun): boolean {
  return env[EPOCH] === undefined || env[EPOCH] === epoch
}

function isAlive({ status }: Service): boolean {
  return status === 'running' || status === 'starting'
}

function stopped(id: string, reason: string): SandboxStatus {
  return reason === 'requested' ? { id, state: 'stopped' } : { id, state: 'stopped', reason }
}

/** Status of sandboxd's `/healthz`. */
async function pollHealth(
  options: SpritesOptions,
  sprite: string,
  deps: TunnelDependencies,
): Promise<number> {
  const duplex = await openTunnel(options, sprite, options.service, deps)
  const response = await sendHttp(duplex, options.service.path, {
    method: 'GET',
    path: '/healthz',
    headers: {},
  })
  await response.body?.cancel()
  return response.status
}

export function spritesHealth(): HostHealth {
  return { status: 'ok', version: SOFTWARE_VERSION, isolation: 'sprite', sandboxes: 0 }
}

export interface CheckDependencies extends TunnelDependencies {
  /** Throws `version_unsupported` if the sandboxd of a sandbox speaks another version. */
  readonly checkVersion: (sandbox: string, fetch: Provider['fetch']) => Promise<unknown>
}

/** Throws why sprites cannot be used: token, network, sprite, or the workspace service in it. A cold sprite is not woken. */
export async function checkSprites(
  options: SpritesOptions,
  api: SpritesApi,
  deps: CheckDependencies,
): Promise<void> {
  const { spriteName, service: target } = options
  if (spriteName === undefined) return api.check()
  const status = await api.sprite(spriteName)
  if (status === undefined) throw new SpritesError('sprite_not_found')
  if (status === 'cold') return
  const service = await api.service(spriteName, SERVICE)
  if (service === undefined || !isAlive(service)) {
    if (!(await api.hasFile(spriteName, PROGRAM))) throw new SpritesError('bad_path')
    return
  }
  const health = await pollHealth(options, spriteName, deps).catch(() => 0)
  if (health !== 200) throw new SpritesError('bad_path')
  const sandbox = service.env['SANDWIRE_SANDBOX']
  if (sandbox === undefined) return
  const fetch: Provider['fetch'] = async (_address, request) =>
    sendHttp(await openTunnel(options, spriteName, target, deps), target.path, request)
  await deps.checkVersion(sandbox, fetch).catch((error: unknown) => {
    // Any other answer is that of a service which the next start replaces.
    if (SandwireError.from(error).code === 'version_unsupported') throw new SpritesError('version_mismatch')
  })
}
