import { Database } from 'bun:sqlite'
import { createConnection, type Socket } from 'node:net'
import { type FakeSprites, openFakeSprites } from '@sandwire/testing/fake-sprites'
import { createLog } from '../../src/log.ts'
import { Breaker } from '../../src/providers/breaker.ts'
import { CONTAINER_SCHEMA, ContainerStore } from '../../src/providers/container/container-store.ts'
import { SpritesApi } from '../../src/providers/sprites/api.ts'
import type { ByteDuplex } from '../../src/providers/sprites/byte-duplex.ts'
import { ExecStore } from '../../src/providers/sprites/exec-store.ts'
import type { ClientHandlers } from '../../src/providers/sprites/exec-sessions.ts'
import { SpritesProvider, type SpritesProviderDependencies } from '../../src/providers/sprites/sprites.ts'
import { sqlOf } from './bun-sql.ts'

/** A TCP connection as workerd's sockets behave: nothing is read ahead. */
function connectTcp({ hostname, port }: { hostname: string; port: number }): ByteDuplex {
  const socket: Socket = createConnection({ host: hostname, port })
  socket.on('error', () => undefined)
  const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  return {
    read: async () => {
      const next = await chunks.next()
      return next.done === true ? undefined : new Uint8Array(next.value)
    },
    write: (bytes) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      socket.write(bytes, (error) => (error === undefined || error === null ? resolve() : reject(error)))
      return promise
    },
    close: () => void socket.destroy(),
  }
}

/** What the provider and its clients need from a runtime. */
function socketDependencies() {
  return {
    connect: connectTcp,
    random: (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes),
    nowMs: () => Date.now(),
    every: (ms: number, run: () => void) => {
      const timer = setInterval(run, ms)
      return () => clearInterval(timer)
    },
  }
}

/** A program that stands in for sandboxd: it serves `/healthz` on the given port, and echoes bodies. */
export const FAKE_SANDBOXD = `#!/bin/sh
port=$(printf '%s\\n' "$@" | sed -n 's/^127.0.0.1://p')
exec ${process.execPath} -e '
Bun.serve({ port: '"$port"', hostname: "127.0.0.1", fetch: (request) => {
  const { pathname } = new URL(request.url)
  if (pathname === "/moved") return new Response(null, { status: 302, headers: { location: "/x" } })
  if (pathname === "/hangs") return new Promise(() => {})
  if (pathname === "/large") return new Response(new Blob([new Uint8Array(8 * 1024 * 1024)]))
  return new Response(request.body, { headers: { "x-sandbox": "yes" } })
} })'
`

/** The client's end of a WebSocket pair. */
export class FakeClient {
  readonly messages: Readonly<Record<string, unknown>>[] = []
  closed: { readonly code: number | undefined; readonly reason: string | undefined } | undefined
  readonly #handlers: ClientHandlers

  constructor(handlers: ClientHandlers) {
    this.#handlers = handlers
  }

  /** What control holds of it. */
  readonly socket = {
    send: (text: string | Uint8Array) =>
      void this.messages.push(JSON.parse(String(text)) as Readonly<Record<string, unknown>>),
    close: (code?: number, reason?: string) => void (this.closed ??= { code, reason }),
  }

  send(message: object | string): void {
    this.#handlers.message(typeof message === 'string' ? message : JSON.stringify(message))
  }

  type(data: string): void {
    this.send({ type: 'input', data })
  }

  disconnect(): void {
    this.#handlers.closed(1000, '')
  }

  /** Joined data of its messages of one type. */
  text(type: 'output' | 'history' | 'error'): string {
    return this.messages.flatMap((each) => (each['type'] === type ? [String(each['data'])] : [])).join('')
  }

  first(type: string): Readonly<Record<string, unknown>> | undefined {
    return this.messages.find((each) => each['type'] === type)
  }
}

/** Id of the sandbox under test. */
export const SANDBOX = '0'.repeat(32)

export interface SpritesUnderTest extends AsyncDisposable {
  /** Clients of terminals, in the order in which they were accepted. */
  readonly clients: FakeClient[]
  /** When `collect` was asked for. */
  readonly wakes: number[]
  /** Lines of control's log. */
  readonly logged: string[]
  readonly execs: ExecStore
  readonly api: FakeSprites
  readonly provider: SpritesProvider
  readonly breaker: Breaker
  readonly counts: Map<string, number>
  readonly starts: () => number
  /** Calls the API below `/v1/sprites`. */
  readonly request: (path: string, method: string, body?: string) => Promise<Response>
  /** Another object's provider for the same sandbox. */
  readonly reopen: () => SpritesProvider
}

const PORT = 8080

/** The provider against the fake API. `spriteName`: the operator's own sprite, on which the program is deployed. */
export async function openSpritesProvider(
  spriteName = 'dev',
  over: Partial<SpritesProviderDependencies> = {},
  program?: { readonly url: string; readonly sha256: string },
): Promise<SpritesUnderTest> {
  const api = await openFakeSprites({ sprites: ['dev'] })
  const request = (path: string, method: string, body?: string): Promise<Response> =>
    fetch(`${api.url}/v1/sprites${path}`, {
      method,
      headers: { authorization: `Bearer ${api.token}` },
      ...(body !== undefined && { body }),
    })
  await request('/dev/fs/write?path=/srv/workspace-api/sandboxd&mode=0755', 'PUT', FAKE_SANDBOXD)
  const sql = sqlOf(new Database(':memory:'))
  for (const statement of CONTAINER_SCHEMA) sql.exec(statement)
  const store = new ContainerStore((query, ...bindings) => sql.exec(query, ...bindings).toArray())
  const breaker = new Breaker()
  const clients: FakeClient[] = []
  const wakes: number[] = []
  const logged: string[] = []
  const execs = new ExecStore((query, ...bindings) => sql.exec(query, ...bindings).toArray())
  const counts = new Map<string, number>()
  const settings = {
    baseUrl: api.url,
    get token() {
      return api.token
    },
  }
  const sleep = (ms: number): Promise<void> => Bun.sleep(Math.min(ms, 20))
  const client = new SpritesApi(settings, {
    fetch: (url, init) => fetch(url, init),
    breaker,
    nowMs: () => Date.now(),
    sleep,
    random: () => 0.5,
  })
  const reopen = (): SpritesProvider =>
    new SpritesProvider({
      ...socketDependencies(),
      options: {
        baseUrl: api.url,
        token: api.token,
        ...(program === undefined ? { spriteName } : { program }),
        service: { host: 'localhost', port: PORT, path: '' },
      },
      api: client,
      store,
      execs,
      sandbox: () => SANDBOX,
      log: createLog((line) => void logged.push(line), Date.now),
      hold: (work) => void work.catch(() => undefined),
      wakeBy: (atMs) => void wakes.push(atMs),
      yieldTurn: () => Bun.sleep(0),
      mintId: () => crypto.randomUUID(),
      acceptClient: (handlers) => {
        const client = new FakeClient(handlers)
        clients.push(client)
        return { socket: client.socket, response: new Response(null) }
      },
      savesFiles: false,
      sleep,
      mintEpoch: () => crypto.randomUUID(),
      acceptSocket: () => {
        throw new Error('Not in Bun')
      },
      checkVersion: async () => undefined,
      count: (metric, labels, by = 1) => {
        const key = [metric, ...Object.values(labels)].join(' ')
        counts.set(key, (counts.get(key) ?? 0) + by)
      },
      ...over,
    })
  const provider = reopen()
  return {
    api,
    provider,
    clients,
    wakes,
    logged,
    execs,
    request,
    breaker,
    counts,
    reopen,
    starts: () =>
      api.requests.filter(({ method, path }) => method === 'PUT' && path.includes('/services/')).length,
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}
