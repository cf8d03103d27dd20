import type { RunningSandboxd } from './sandboxd.ts'

/** Stands where control stands: passes connections on to a real sandboxd, and asks for the credential again. */
export interface ReauthorizingDoor extends AsyncDisposable {
  readonly url: string
  /** Credentials of the upgrades, in order. */
  readonly shown: readonly (string | null)[]
  /** Closes what is attached, as sandboxd does when a right has to be shown again. */
  askAgain(): void
}

interface Link {
  readonly upstream: WebSocket
  /** Came before the upstream was open. */
  readonly early: (string | Buffer<ArrayBuffer>)[]
}

const REAUTHORIZE = 4436

export function openReauthorizingDoor(
  sandboxd: RunningSandboxd,
  answer: (request: Request) => Response | Promise<Response>,
  /** Turns an attach away. */
  refuse: (request: Request) => Response | undefined = () => undefined,
): ReauthorizingDoor {
  const shown: (string | null)[] = []
  const open = new Set<Bun.ServerWebSocket<Link>>()
  const server = Bun.serve<Link>({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, self) => {
      const { pathname, search } = new URL(request.url)
      if (pathname !== '/attach') return answer(request)
      const refusal = refuse(request)
      if (refusal !== undefined) return refusal
      shown.push(request.headers.get('authorization'))
      const options = { protocols: ['sandwire.v1'], headers: { authorization: `Bearer ${sandboxd.secret}` } }
      // Bun takes headers here; the types of browsers know only protocols.
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
    shown,
    askAgain: () => open.forEach((socket) => socket.close(REAUTHORIZE, 'reauthorise')),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
