import type { Server } from 'bun'
import { type ErrorCode, SandwireError, type StopReason, TokenBucket } from '@sandwire/protocol'
import { AttachHandler } from './attach-handler.ts'
import { respondCompatError } from './compat/responses.ts'
import { COMPAT_PREFIX } from './compat/routes.ts'
import { createSocketHandlers, type SocketData } from './attach-socket.ts'
import { ClaudeStreams } from './compat/claude-streams.ts'
import { PTY_PATH, PtyEndpoint } from './compat/pty-endpoint.ts'
import { TEXT_PATH, TextEndpoint } from './compat/text-endpoint.ts'
import { Api, methodsOf } from './http/api.ts'
import type { AgentRegistry } from './agents/agent-registry.ts'
import { EventEndpoint } from './agents/event-endpoint.ts'
import type { Caller } from './caller.ts'
import { drainBody } from './http/request-body.ts'
import { RequestGuard } from './http/request-guard.ts'
import { respondError, respondJson } from './http/respond.ts'
import type { Log } from './log.ts'
import { BandwidthShares } from './sessions/bandwidth-shares.ts'
import type { SessionRegistry } from './sessions/session-registry.ts'
import { MAX_BUFFERED_BYTES } from './sessions/connections.ts'
import type { Settings } from './settings.ts'
import type { VersionService } from './versions/version-service.ts'
import type { Workspace } from './workspace/routes/route.ts'

export type ListenAddress =
  | { readonly kind: 'tcp'; readonly hostname: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

export interface ServerDependencies {
  readonly settings: Settings
  readonly registry: SessionRegistry
  readonly workspace: Workspace
  readonly versions: VersionService
  readonly agents: AgentRegistry
  readonly log: Log
  readonly mintRequestId: () => string
  /** A secret for a compat client: 32 hex digits. */
  readonly mintIdentity: () => string
  /** Monotonic milliseconds, and the wall time at which they were zero. */
  readonly now: () => number
  readonly epochMs: number
  /** Milliseconds since the epoch by the system clock. */
  readonly wallClock: () => number
  /** Sets the reason that clients get when sandboxd is stopped. */
  readonly setStopReason: (reason: StopReason) => void
}

/** No limit in Bun: it reads a body only as fast as the route does, and every route has its own limit. */
const MAX_REQUEST_BYTES = Number.MAX_SAFE_INTEGER

/** Idle timeout of file requests, for slow disks and slow clients. Bun's default is 10 s. */
const WORKSPACE_IDLE_SECONDS = 120

interface Call {
  readonly request: Request
  readonly server: Server<SocketData>
  readonly url: URL
  readonly requestId: string
}

/** Host headers that name this server. */
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

/** On a unix socket Bun has no timeout for single requests, and only control can connect. The types do not know the option there. */
const NO_IDLE_TIMEOUT: object = { idleTimeout: 0 }

/** Listens and serves until stopped. */
export function listen(address: ListenAddress, deps: ServerDependencies): Server<SocketData> {
  const app = new App(deps)
  const handlers = createSocketHandlers(deps.now, deps.log, (code) => deps.registry.countDisconnect(code))
  const common = {
    maxRequestBodySize: MAX_REQUEST_BYTES,
    development: false,
    fetch: (request: Request, server: Server<SocketData>) => app.fetch(request, server),
    error: (error: Error) => app.failed(error),
    websocket: {
      ...handlers,
      perMessageDeflate: false,
      maxPayloadLength: deps.settings.maxMessageBytes,
      // Bun's own idle timeout and pings would close the connection of a slow reader.
      idleTimeout: 0,
      sendPings: false,
      backpressureLimit: MAX_BUFFERED_BYTES * 2,
      closeOnBackpressureLimit: false,
    },
  }
  const server: Server<SocketData> =
    address.kind === 'unix'
      ? Bun.serve({ ...common, unix: address.path, ...NO_IDLE_TIMEOUT })
      : // By default Bun shares a port between servers outside development and distributes connections at random.
        Bun.serve({ ...common, hostname: address.hostname, port: address.port, reusePort: false })
  app.open(hostNames(address, server.port ?? 0, deps.settings.hosts))
  return server
}

/** Handles a request: Host and Origin, credential, rate limit, then the route. */
class App {
  readonly #deps: ServerDependencies
  /** Separate limits, so that unauthenticated requests cannot use up the others'. */
  readonly #authenticated: TokenBucket
  readonly #unauthenticated: TokenBucket
  readonly #refusals = new Map<string, number>()
  readonly #api: Api
  readonly #attach: AttachHandler
  readonly #events: EventEndpoint
  #guard: RequestGuard | undefined

  constructor(deps: ServerDependencies) {
    this.#deps = deps
    const { requestsPerSecond } = deps.settings
    this.#authenticated = new TokenBucket(requestsPerSecond, requestsPerSecond * 2, deps.now())
    this.#unauthenticated = new TokenBucket(requestsPerSecond, requestsPerSecond * 2, deps.now())
    const { registry, workspace, versions, agents, epochMs, settings, setStopReason } = deps
    const streams = new ClaudeStreams(agents, { now: deps.now, mintId: () => crypto.randomUUID() })
    this.#events = new EventEndpoint(agents, streams)
    const { version } = settings
    this.#api = new Api({
      registry,
      workspace,
      versions,
      agents,
      revokeViewers: (filter) => this.#events.revoke(filter),
      epochMs,
      version,
      refusals: this.#refusals,
      setStopReason,
    })
    const { now, wallClock, mintIdentity } = deps
    this.#attach = new AttachHandler({
      registry,
      agents,
      compat: {
        [PTY_PATH]: new PtyEndpoint({ mintIdentity, now }),
        [TEXT_PATH]: new TextEndpoint({ mintIdentity, now }),
      },
      now,
      wallClock,
      shares: new BandwidthShares(settings.session, now),
      recordRefusal: (error, requestId) => this.#recordRefusal(error, requestId),
    })
  }

  open(hosts: ReadonlySet<string>): void {
    const { settings, wallClock } = this.#deps
    const { credential, origins } = settings
    this.#guard = new RequestGuard({ credential, origins, hosts, wallClock })
  }

  async fetch(request: Request, server: Server<SocketData>): Promise<Response | undefined> {
    const requestId = this.#deps.mintRequestId()
    try {
      return await this.#route(request, server, requestId)
    } catch (caught) {
      return this.#refuse(SandwireError.from(caught), requestId)
    }
  }

  failed(error: Error): Response {
    this.#deps.log.error('server_error', { message: error.message })
    return respondError(new SandwireError('internal', 'Internal error'), this.#deps.mintRequestId())
  }

  #refuse(error: SandwireError, requestId: string, respond = respondError): Response {
    this.#recordRefusal(error, requestId)
    return respond(error, requestId)
  }

  #recordRefusal(error: SandwireError, requestId: string): void {
    this.#count(error.code)
    if (error.code === 'internal')
      this.#deps.log.error('request_failed', { request_id: requestId, message: String(error.cause) })
    this.#deps.log.info('refused', { request_id: requestId, code: error.code })
  }

  #count(code: ErrorCode): void {
    this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1)
  }

  async #route(
    request: Request,
    server: Server<SocketData>,
    requestId: string,
  ): Promise<Response | undefined> {
    const guard = this.#guard
    if (guard === undefined) throw new SandwireError('shutting_down', 'Not ready')
    const refusal = guard.checkSource(request.headers)
    if (refusal !== undefined) throw refusal
    // Not earlier: the URL contains the Host header.
    const url = new URL(request.url)
    const caller = await guard.authenticate(request, url)
    const isRefused = caller instanceof SandwireError
    const limit = isRefused ? this.#unauthenticated : this.#authenticated
    if (!limit.take(1, this.#deps.now()))
      throw new SandwireError('rate_limited', 'Cannot take more requests now')
    if (url.pathname === '/healthz') return respondJson({ status: 'ok' })
    if (isRefused) throw caller
    return this.#serve({ request, server, url, requestId: caller.requestId ?? requestId }, caller)
  }

  /** Serves an authenticated caller. */
  async #serve(call: Call, caller: Caller): Promise<Response | undefined> {
    const { pathname } = call.url
    try {
      if (this.#attach.handles(pathname)) {
        if (call.url.searchParams.has('pane')) await this.#deps.registry.findPanes()
        if (caller.agentTui !== undefined) await this.#deps.agents.endResting()
        return this.#attach.attach(call, caller)
      }
      if (this.#events.handles(call.request, pathname)) return this.#events.upgrade(call, caller)
      // Streams of events may be silent for long, and so may control's requests to save and restore files, which it limits itself.
      if (/^\/(agents|versions)\//.test(pathname)) call.server.timeout(call.request, 0)
      if (pathname.startsWith('/workspace/')) call.server.timeout(call.request, WORKSPACE_IDLE_SECONDS)
      const { request, url, requestId } = call
      const response = await this.#api.handle({ request, url, caller, requestId })
      if (response.status >= 400) await drainBody(request)
      return response
    } catch (caught) {
      const error = SandwireError.from(caught)
      const respond = pathname.startsWith(COMPAT_PREFIX) ? respondCompatError : respondError
      const response = this.#refuse(error, call.requestId, respond)
      if (error.code === 'method_not_allowed') response.headers.set('allow', methodsOf(pathname).join(', '))
      return response
    }
  }
}
