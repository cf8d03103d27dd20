import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { liveBehavior, type SpritesBehavior } from './behavior.ts'
import { ExecSession, type ExecClient } from './exec-session.ts'
import { addSprite, handleRequest, parseExec, parseSignal, type SpritesState } from './routes.ts'
import type { FakeSprite, SpriteConnection } from './sprite.ts'

/** Bytes that may wait for one client before the source is paused. */
const MAX_BACKLOG_BYTES = 4 * 1024 * 1024

export interface FakeSpritesOptions {
  readonly port?: number
  /** Default: random. */
  readonly token?: string
  /** Sprites that exist from the start. */
  readonly sprites?: readonly string[]
  /** Certificate and key; absent: no TLS. */
  readonly tls?: { readonly cert: string; readonly key: string }
}

/** A request as tests see it; the token is replaced. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
}

/** The Sprites API on this machine. */
export interface FakeSprites extends AsyncDisposable {
  readonly url: string
  /** The accepted token; a test may change it. */
  token: string
  readonly behavior: SpritesBehavior
  readonly requests: readonly SeenRequest[]
  sprite(name: string): FakeSprite
  readonly sprites: ReadonlyMap<string, FakeSprite>
}

/** What a WebSocket does. */
interface SocketHandler {
  open(socket: Socket): void
  message(message: string | Buffer): void
  /** The client reads again. */
  drain(): void
  close(): void
}

type Socket = Bun.ServerWebSocket<SocketHandler>

/** The exec API's socket: starts a process or attaches to one. */
class ExecSocket implements SocketHandler, ExecClient {
  readonly #sprite: FakeSprite
  readonly #query: URLSearchParams
  readonly #id: string | undefined
  readonly #behavior: SpritesBehavior
  #socket: Socket | undefined
  #session: ExecSession | undefined
  #slowTimer: ReturnType<typeof setTimeout> | undefined

  constructor(sprite: FakeSprite, query: URLSearchParams, id: string | undefined, behavior: SpritesBehavior) {
    this.#sprite = sprite
    this.#query = query
    this.#id = id
    this.#behavior = behavior
  }

  open(socket: Socket): void {
    this.#socket = socket
    void this.#begin()
  }

  async #begin(): Promise<void> {
    const { sessionInfoMs, hasFastPath } = this.#behavior
    const session =
      this.#id === undefined
        ? new ExecSession(this.#sprite, parseExec(this.#query), this.#behavior)
        : this.#sprite.sessions.get(this.#id)
    if (session === undefined) return this.#socket?.terminate()
    if (sessionInfoMs > 0) await Bun.sleep(sessionInfoMs)
    if (hasFastPath && this.#id === undefined && !session.request.isTty)
      await Promise.race([session.ended, Bun.sleep(500)])
    this.#session = session
    session.attach(this, this.#id === undefined, Number(this.#query.get('output_offset') ?? 0))
  }

  message(message: string | Buffer): void {
    const session = this.#session
    if (session === undefined) return
    if (typeof message === 'string') return this.#command(session, message)
    if (session.request.isTty) return session.write(message)
    if (message[0] === 0) session.write(message.subarray(1))
    else if (message[0] === 4) session.endInput()
  }

  #command(session: ExecSession, text: string): void {
    const command = JSON.parse(text) as Readonly<Record<string, unknown>>
    if (command['type'] === 'resize') session.resize(Number(command['cols']), Number(command['rows']))
    if (command['type'] === 'signal') session.signal(parseSignal(String(command['signal'])))
  }

  sendText(message: object): void {
    this.#send(JSON.stringify(message))
  }

  sendBytes(bytes: Uint8Array): void {
    this.#send(bytes)
  }

  #send(message: string | Uint8Array): void {
    const sent = this.#socket?.send(message) ?? 0
    if (sent > 0 || this.#slowTimer !== undefined) return
    this.#slowTimer = setTimeout(() => this.#socket?.terminate(), this.#behavior.slowReaderMs)
  }

  drain(): void {
    clearTimeout(this.#slowTimer)
    this.#slowTimer = undefined
  }

  end(): void {
    if (this.#behavior.execEnd === 'drop') this.#socket?.terminate()
    else this.#socket?.close(1000)
  }

  close(): void {
    clearTimeout(this.#slowTimer)
    this.#session?.detach(this)
  }
}

/** The proxy's socket: one TCP connection into the sprite. */
class ProxySocket implements SocketHandler {
  readonly #sprite: FakeSprite
  #socket: Socket | undefined
  #connection: SpriteConnection | undefined
  #isConnecting = false
  #isClosed = false

  constructor(sprite: FakeSprite) {
    this.#sprite = sprite
  }

  open(socket: Socket): void {
    this.#socket = socket
  }

  message(message: string | Buffer): void {
    if (typeof message === 'string') void this.#connect(message)
    else this.#connection?.write(new Uint8Array(message))
  }

  async #connect(text: string): Promise<void> {
    if (this.#isConnecting) return
    this.#isConnecting = true
    const { host, port } = JSON.parse(text) as { readonly host: string; readonly port: number }
    const isLocal = host === 'localhost' || host === '127.0.0.1'
    const connection = isLocal ? await this.#sprite.connect(port) : undefined
    if (connection === undefined) return this.#socket?.close(1011, 'connection refused')
    this.#connection = connection
    if (this.#isClosed) return connection.close()
    this.#socket?.send(JSON.stringify({ status: 'connected', target: `10.0.0.1:${port}` }))
    connection.listen(
      (bytes) => {
        this.#socket?.send(bytes)
        if ((this.#socket?.getBufferedAmount() ?? 0) > MAX_BACKLOG_BYTES / 4) connection.pause()
      },
      () => this.#socket?.close(1000),
    )
  }

  drain(): void {
    this.#connection?.resume()
  }

  close(): void {
    this.#isClosed = true
    this.#connection?.close()
  }
}

function handlerOf(
  sprite: FakeSprite,
  rest: readonly string[],
  query: URLSearchParams,
  behavior: SpritesBehavior,
): SocketHandler | Response {
  const [area, pathId] = rest
  if (area === 'proxy') return new ProxySocket(sprite)
  if (area !== 'exec') return Response.json({ error: 'not found' }, { status: 404 })
  const id = pathId ?? query.get('id') ?? undefined
  if (id !== undefined && !sprite.sessions.has(id))
    return new Response(`session not found: ${id}`, { status: 404 })
  return new ExecSocket(sprite, query, id, behavior)
}

/** Starts the API. It needs root and bubblewrap: each sprite has its own folders and network. */
export async function openFakeSprites(options: FakeSpritesOptions = {}): Promise<FakeSprites> {
  const folder = mkdtempSync(path.join(tmpdir(), 'fake-sprites-'))
  const behavior = liveBehavior()
  const requests: SeenRequest[] = []
  const state: SpritesState = { folder, sprites: new Map(), behavior, url: () => url }
  let token = options.token ?? crypto.randomUUID()
  const server = Bun.serve<SocketHandler>({
    hostname: '127.0.0.1',
    port: options.port ?? 0,
    idleTimeout: 0,
    maxRequestBodySize: 1024 * 1024 * 1024,
    ...(options.tls !== undefined && { tls: options.tls }),
    fetch: async (request, self) => {
      const { pathname, search, searchParams } = new URL(request.url)
      requests.push({ method: request.method, path: `${pathname}${search}` })
      const intercepted = behavior.intercept?.(request)
      if (intercepted !== undefined) return intercepted
      if (request.headers.get('authorization') !== `Bearer ${token}`)
        return Response.json({ error: 'unauthorized', message: 'invalid token' }, { status: 401 })
      if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') return handleRequest(request, state)
      const [, , , name = '', ...rest] = pathname.split('/').map(decodeURIComponent)
      const sprite = state.sprites.get(name)
      if (sprite === undefined) return Response.json({ error: 'sprite not found' }, { status: 404 })
      await sprite.wake()
      const handler = handlerOf(sprite, rest, searchParams, behavior)
      if (handler instanceof Response) return handler
      const headers = { 'x-sprite-capabilities': 'signal', 'sprite-version': '0.0.1-rc31' }
      return self.upgrade(request, { data: Object.assign(handler, { sprite }), headers })
        ? undefined
        : new Response(null, { status: 400 })
    },
    websocket: {
      maxPayloadLength: 64 * 1024 * 1024,
      backpressureLimit: 64 * 1024 * 1024,
      idleTimeout: 0,
      sendPings: false,
      open: (socket) => {
        const connection = { disconnect: () => socket.terminate() }
        const { sprite } = socket.data as SocketHandler & { readonly sprite: FakeSprite }
        sprite.connections.add(connection)
        connections.set(socket, () => sprite.connections.delete(connection))
        socket.data.open(socket)
      },
      message: (socket, message) => socket.data.message(message),
      drain: (socket) => socket.data.drain(),
      close: (socket) => {
        connections.get(socket)?.()
        connections.delete(socket)
        socket.data.close()
      },
    },
  })
  const connections = new Map<Socket, () => void>()
  const url = `${options.tls === undefined ? 'http' : 'https'}://localhost:${server.port}`
  for (const name of options.sprites ?? []) await addSprite(state, name).wake()
  return {
    url,
    get token() {
      return token
    },
    set token(value) {
      token = value
    },
    behavior,
    requests,
    sprites: state.sprites,
    sprite(name) {
      const found = state.sprites.get(name)
      if (found === undefined) throw new Error(`No sprite has the name "${name}"`)
      return found
    },
    async [Symbol.asyncDispose]() {
      for (const sprite of state.sprites.values()) await sprite.destroy()
      await server.stop(true)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Why the API cannot run here; undefined if it can. */
export function findFakeSpritesProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'sprites with a network of their own need root'
  return Bun.which('bwrap') === null || Bun.which('nsenter') === null
    ? 'bubblewrap or nsenter is missing'
    : undefined
}
