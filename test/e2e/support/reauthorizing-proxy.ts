import type { RunningSandboxd } from './sandboxd.ts'

/** A stand-in for control that proxies connections to a real sandboxd and can require reauthorization. */
export interface ReauthorizingProxy extends AsyncDisposable {
  readonly url: string
  /** Authorization headers of the upgrades, in order. */
  readonly authorizations: readonly (string | null)[]
  /** Closes all connections, as sandboxd does to require reauthorization. */
  requireReauthorization(): void
}

interface Connection {
  readonly upstream: WebSocket
  /** Messages received before the upstream was open. */
  readonly early: (string | Buffer<ArrayBuffer>)[]
}

const REAUTHORIZE = 4436

export function openReauthorizingProxy(
  sandboxd: RunningSandboxd,
  respond: (request: Request) => Response | Promise<Response>,
  /** Refuses an attach with a response. */
  refuse: (request: Request) => Response | undefined = () => undefined,
): ReauthorizingProxy {
  const authorizations: (string | null)[] = []
  const open = new Set<Bun.ServerWebSocket<Connection>>()
  const server = Bun.serve<Connection>({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, self) => {
      const { pathname, search } = new URL(request.url)
      if (pathname !== '/attach') return respond(request)
      const refusal = refuse(request)
      if (refusal !== undefined) return refusal
      authorizations.push(request.headers.get('authorization'))
      const options = { protocols: ['sandwire.v1'], headers: { authorization: `Bearer ${sandboxd.secret}` } }
      // Bun accepts headers here; the DOM types do not.
      const target = `${sandboxd.url.replace(/^http/, 'ws')}/attach${search}`
      const upstream = new WebSocket(target, options as never)
      upstream.binaryType = 'arraybuffer'
      const headers = { 'sec-websocket-protocol': 'sandwire.v1' }
      return self.upgrade(request, { data: { upstream, early: [] }, headers })
        ? undefined
        : new Response('no', { status: 400 })
    },
    websocket: {
      open: (socket) => {
        const { upstream, early } = socket.data
        open.add(socket)
        upstream.addEventListener('open', () => early.forEach((data) => upstream.send(data)))
        upstream.addEventListener(
          'message',
          ({ data }: MessageEvent<string | ArrayBuffer>) => void socket.send(data),
        )
        upstream.addEventListener('close', ({ code, reason }) => socket.close(code, reason))
      },
      message: ({ data: { upstream, early } }, data) => {
        if (upstream.readyState === WebSocket.OPEN) upstream.send(data)
        else early.push(data)
      },
      close: (socket) => {
        open.delete(socket)
        socket.data.upstream.close()
      },
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    authorizations,
    requireReauthorization: () => open.forEach((socket) => socket.close(REAUTHORIZE, 'reauthorise')),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
