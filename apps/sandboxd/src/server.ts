import type { Server } from 'bun'
import { type Dialect, type ErrorCode, SandwireError, SUBPROTOCOL, TokenBucket } from '@sandwire/protocol'
import { createSocketHandlers, type SocketData } from './attach-socket.ts'
import { Api } from './http/api.ts'
import { parseAttach } from './http/attach-parameters.ts'
import { Gatekeeper } from './http/gatekeeper.ts'
import { respondError, respondJson } from './http/respond.ts'
import { readUpgrade } from './http/upgrade.ts'
import type { Log } from './log.ts'
import type { SessionHost } from './sessions/session-host.ts'
import type { SessionRegistry } from './sessions/session-registry.ts'
import { MAX_BUFFERED_BYTES } from './sessions/socket-link.ts'
import type { Settings } from './settings.ts'

/** Where to listen. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly hostname: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

export interface ServerDependencies {
  readonly settings: Settings
  readonly registry: SessionRegistry
  readonly log: Log
  readonly mintRequestId: () => string
  /** Monotonic milliseconds, and the wall time at which they were zero. */
  readonly now: () => number
  readonly epochMs: number
}

/** The identity behind the bearer secret. Sessions and create ids belong to it. */
const PRINCIPAL = 'bearer'
/** Largest request body Bun accepts; routes have smaller ones of their own. */
const MAX_REQUEST_BYTES = 1024 * 1024

/** An upgrade that may go ahead. */
interface Admitted {
  readonly data: SocketData
  /** The session made for it, which ends again when the handshake fails. */
  readonly created: SessionHost | undefined
}

/** Host headers that mean this server. */
function hostNames(address: ListenAddress, port: number, extra: readonly string[]): Set<string> {
  const names = new Set(extra.map((name) => name.toLowerCase()))
  if (address.kind === 'unix') return names.add('localhost')
  const isLoopback =
    address.hostname === '127.0.0.1' || address.hostname === 'localhost' || address.hostname === '::1'
  const own = address.hostname.includes(':') ? `[${address.hostname}]` : address.hostname
  for (const name of isLoopback ? [own, 'localhost', '127.0.0.1', '[::1]'] : [own])
    names.add(`${name}:${port}`.toLowerCase())
  return names
}

/** Listens and serves until stopped. */
export function listen(address: ListenAddress, deps: ServerDependencies): Server<SocketData> {
  const app = new App(deps)
  const handlers = createSocketHandlers(deps.now)
  const common = {
    maxRequestBodySize: MAX_REQUEST_BYTES,
    development: false,
    fetch: (request: Request, server: Server<SocketData>) => app.fetch(request, server),
    error: (error: Error) => app.failed(error),
    websocket: {
      ...handlers,
      perMessageDeflate: false,
      maxPayloadLength: deps.settings.maxMessageBytes,
      // Bun's own idle timeout and pings would take a stalled reader for a dead one.
      idleTimeout: 0,
      sendPings: false,
      backpressureLimit: MAX_BUFFERED_BYTES * 2,
      closeOnBackpressureLimit: false,
    },
  }
  const server: Server<SocketData> =
    address.kind === 'unix'
      ? Bun.serve({ ...common, unix: address.path })
      : // Outside development Bun shares a port between servers by default, and its connections at random.
        Bun.serve({ ...common, hostname: address.hostname, port: address.port, reusePort: false })
  app.open(hostNames(address, server.port ?? 0, deps.settings.hosts))
  return server
}

/** Routes a request: source, credential, then the route itself. */
class App {
  readonly #deps: ServerDependencies
  /** Requests with the secret, and those without. */
  readonly #requests: TokenBucket
  readonly #strangers: TokenBucket
  readonly #refusals = new Map<string, number>()
  readonly #api: Api
  #gatekeeper: Gatekeeper | undefined
  #links = 0

  constructor(deps: ServerDependencies) {
    this.#deps = deps
    const { requestsPerSecond } = deps.settings
    this.#requests = new TokenBucket(requestsPerSecond, requestsPerSecond * 2, deps.now())
    this.#strangers = new TokenBucket(requestsPerSecond, requestsPerSecond * 2, deps.now())
    const { registry, epochMs, settings } = deps
    this.#api = new Api({ registry, epochMs, version: settings.version, refusals: this.#refusals })
  }

  open(hosts: ReadonlySet<string>): void {
    const { secret, origins } = this.#deps.settings
    this.#gatekeeper = new Gatekeeper({ secret, origins, hosts })
  }

  async fetch(request: Request, server: Server<SocketData>): Promise<Response | undefined> {
    const requestId = this.#deps.mintRequestId()
    try {
      return await this.#route(request, server, requestId)
    } catch (caught) {
      const error = SandwireError.from(caught)
      if (error.code === 'internal')
        this.#deps.log.error('request_failed', { request_id: requestId, message: String(error.cause) })
      return this.#refuse(error, requestId)
    }
  }

  failed(error: Error): Response {
    this.#deps.log.error('server_error', { message: error.message })
    return respondError(new SandwireError('internal', 'Internal error'), this.#deps.mintRequestId())
  }

  #refuse(error: SandwireError, requestId: string): Response {
    this.#count(error.code)
    this.#deps.log.info('refused', { request_id: requestId, code: error.code })
    return respondError(error, requestId)
  }

  #count(code: ErrorCode): void {
    this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1)
  }

  async #route(
    request: Request,
    server: Server<SocketData>,
    requestId: string,
  ): Promise<Response | undefined> {
    const wrongSource =
      this.#gatekeeper === undefined
        ? new SandwireError('shutting_down', 'Not ready')
        : this.#gatekeeper.checkSource(request.headers)
    if (wrongSource !== undefined) throw wrongSource
    const url = new URL(request.url)
    const unauthorized = this.#gatekeeper?.checkSecret(request.headers)
    const isHealth = url.pathname === '/healthz'
    // Strangers have a budget of their own, so that they cannot use up everybody's.
    const budget = unauthorized === undefined ? this.#requests : this.#strangers
    if (!budget.take(1, this.#deps.now()))
      throw new SandwireError('rate_limited', 'Cannot take more requests now')
    if (isHealth) return respondJson({ status: 'ok' })
    if (unauthorized !== undefined) throw unauthorized
    if (url.pathname === '/attach') return this.#attach(request, server, url, requestId)
    return this.#api.handle(request, url, PRINCIPAL)
  }

  #attach(request: Request, server: Server<SocketData>, url: URL, requestId: string): Response | undefined {
    const { dialect, isUpgrade, hasBody } = readUpgrade(request)
    if (hasBody) throw new SandwireError('bad_request', 'Cannot upgrade: the request has a body')
    let admitted: Admitted
    try {
      admitted = this.#admit(url, dialect, isUpgrade)
    } catch (caught) {
      const error = SandwireError.from(caught)
      if (dialect === 'plain' || !isUpgrade || error.code === 'internal') throw error
      this.#count(error.code)
      this.#deps.log.info('refused', { request_id: requestId, code: error.code })
      admitted = { data: { kind: 'refuse', error }, created: undefined }
    }
    // Empty, because Bun would answer a missing one with the first subprotocol the client offered.
    const headers = { 'sec-websocket-protocol': dialect === 'v1' ? SUBPROTOCOL : '' }
    if (server.upgrade(request, { data: admitted.data, headers })) return undefined
    admitted.created?.end()
    throw new SandwireError('bad_request', 'Cannot upgrade: the WebSocket handshake is malformed')
  }

  /** Finds or creates the session that an upgrade names. Nothing is created for a request that is no upgrade. */
  #admit(url: URL, dialect: Dialect, isUpgrade: boolean): Admitted {
    // A request that is no upgrade has not chosen a dialect: clients ask that way what was wrong with their upgrade.
    const parameters = parseAttach(url.searchParams, isUpgrade ? dialect : 'v1')
    if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
    const { registry, now } = this.#deps
    const { role, take, cols, rows } = parameters.rights
    const { host, isNew } =
      parameters.kind === 'join'
        ? { host: registry.find(parameters.session), isNew: false }
        : registry.create(PRINCIPAL, parameters.createId, parameters.create)
    this.#links += 1
    return {
      created: isNew ? host : undefined,
      data: {
        kind: 'attach',
        link: this.#links,
        host,
        // The bearer may start any command already.
        rights: { principal: PRINCIPAL, authority: role, dialect, take, exec: true },
        start: { env: {}, cols, rows },
        liveness: { heardMs: now(), timer: undefined },
      },
    }
  }
}
