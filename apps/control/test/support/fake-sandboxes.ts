import {
  importPublicKey,
  type InternalClaims,
  type StartSpec,
  verifyInternalToken,
} from '@sandwire/internal-api'
import { rejectionOf } from '@sandwire/testing'
import { socketPath } from './socket-path.ts'
import type { SandboxRunner } from './fake-host.ts'

/** A socket of a fake sandbox. Without `opened` it echoes. */
export interface SocketData {
  readonly session: string
  readonly opened?: (socket: { send(text: string): unknown; close(code?: number): void }) => void
  readonly closed?: () => void
}
export type FakeServer = Bun.Server<SocketData>

/** What an intercept returns for a request that it upgraded. */
export const UPGRADED = 'upgraded'
type Intercepted = Response | typeof UPGRADED | undefined
type Intercept = (request: Request, server: FakeServer) => Intercepted | Promise<Intercepted>

interface Place {
  readonly server: ReturnType<typeof Bun.serve>
  readonly key: CryptoKey
}

/** A request that sandboxd accepted. */
export interface Seen {
  readonly claims: InternalClaims
  readonly headers: Readonly<Record<string, string>>
}

/** A session as sandboxd reports it. */
export function factsOf(id: string): unknown {
  return {
    id,
    state: 'running',
    mode: 'pipe',
    cmd: 'cat',
    attachments: 0,
    output: {
      start: 0,
      end: 0,
    },
    lastInputMs: null,
    lastOutputMs: null,
    keepSeconds: 60,
    pinned: false,
    exit: null,
  }
}

/** Sandboxes whose sandboxd verifies tokens like the real one and echoes messages. */
export class FakeSandboxes implements SandboxRunner, AsyncDisposable {
  /** Requests with a valid token, in order. */
  readonly seen: Seen[] = []
  /** Why tokens were refused. */
  readonly refusals: string[] = []
  version: unknown = { name: 'sandboxd', version: '0', protocol: 1, compatible_from: 1 }
  activity: unknown = { attachments: 0, sessions: [], exits: [] }
  /** Responds instead of the sandbox while set; undefined falls through. */
  intercept: Intercept | undefined
  /** Responds to file requests with a valid token. */
  files: ((request: Request) => Promise<Response>) | undefined
  /** Headers of every 101, as a malicious sandbox might send them. */
  socketHeaders: Record<string, string> = {}
  /** Sessions that were started. */
  readonly sessions = new Set<string>()
  /** How long a start takes. */
  startMs = 0
  starts = 0
  /** Sockets that neither side has closed. */
  openSockets = 0
  readonly #places = new Map<string, Place>()

  async start(spec: StartSpec): Promise<string> {
    this.starts += 1
    await Bun.sleep(this.startMs)
    const key = await importPublicKey(spec.publicKey)
    const socket = socketPath()
    const server = Bun.serve<SocketData>({
      unix: socket,
      development: false,
      // As in the real one, each route limits its own body.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      fetch: (request, self) => this.#serve(request, self, spec.id, key),
      websocket: {
        open: (socket) => {
          this.openSockets += 1
          if (socket.data.opened === undefined) socket.send(`session ${socket.data.session}`)
          else socket.data.opened(socket)
        },
        message: (socket, message) => void socket.send(message),
        close: (socket) => {
          this.openSockets -= 1
          socket.data.closed?.()
        },
      },
    })
    this.#places.set(spec.id, { server, key })
    return socket
  }

  async stop(id: string): Promise<void> {
    await this.#places.get(id)?.server.stop(true)
    this.#places.delete(id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of this.#places.keys()) await this.stop(id)
  }

  async #serve(
    request: Request,
    server: Bun.Server<SocketData>,
    sandbox: string,
    key: CryptoKey,
  ): Promise<Response | undefined> {
    const intercepted = await this.intercept?.(request, server)
    if (intercepted === UPGRADED) return undefined
    if (intercepted !== undefined) return intercepted
    const url = new URL(request.url)
    const token = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? ''
    const facts = { method: request.method, path: url.pathname + url.search, sandbox, nowMs: Date.now() }
    const verified = verifyInternalToken(key, token, facts)
    try {
      this.seen.push({ claims: await verified, headers: Object.fromEntries(request.headers) })
    } catch {
      this.refusals.push(String(await rejectionOf(verified)))
      return Response.json({ error: { code: 'unauthorized', message: 'no' } }, { status: 401 })
    }
    const { claims } = this.seen.at(-1) ?? { claims: undefined }
    if (url.pathname === '/__meta/version') return Response.json(this.version)
    if (url.pathname === '/activity') return Response.json(this.activity)
    if (url.pathname === '/attachments/close') return Response.json({ closed: 0 })
    if (url.pathname.startsWith('/workspace/') && this.files !== undefined) return this.files(request)
    const [, named = ''] = /^\/sessions\/([^/]+)$/.exec(url.pathname) ?? []
    if (this.sessions.has(named)) return Response.json(factsOf(named))
    if (url.pathname === '/attach' && this.#upgrade(request, server, claims?.session)) return undefined
    return Response.json({ error: { code: 'session_not_found', message: 'RAW' } }, { status: 404 })
  }

  /** True if the request was upgraded; `made` is the id of a session that it starts. */
  #upgrade(request: Request, server: Bun.Server<SocketData>, made: string | undefined): boolean {
    const requested = new URL(request.url).searchParams.get('session')
    const session = requested ?? made ?? ''
    if (requested === null) this.sessions.add(session)
    const offered = request.headers.get('sec-websocket-protocol') ?? ''
    const headers = { 'sec-websocket-protocol': offered, ...this.socketHeaders }
    return this.sessions.has(session) && server.upgrade(request, { data: { session }, headers })
  }
}
