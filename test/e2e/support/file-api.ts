import { type RunningSandboxd, startSandboxd } from './sandboxd.ts'

/** Control's file routes for one sandbox, backed by a real sandboxd. */
export interface FileApi extends AsyncDisposable {
  readonly sandboxd: RunningSandboxd
  readonly port: number
  readonly url: string
  /** Method and path of every request so far. */
  readonly requests: readonly string[]
  /** Handles a request override of sandboxd, unless it returns undefined. */
  override: ((request: Request, url: URL) => Response | undefined) | undefined
}

/** Name of the sandbox. */
export const BOX = 'box'

const PREFIX = `/api/workspaces/${BOX}/`

/** Opens a stand-in for control that streams file requests to sandboxd and back. */
export async function openFileApi(): Promise<FileApi> {
  const sandboxd = await startSandboxd()
  const requests: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: async (request) => {
      const url = new URL(request.url)
      requests.push(`${request.method} ${url.pathname}`)
      const overridden = api.override?.(request, url)
      if (overridden !== undefined) return overridden
      if (!url.pathname.startsWith(PREFIX)) return new Response('', { status: 404 })
      const headers = new Headers(request.headers)
      headers.set('authorization', sandboxd.headers.authorization)
      headers.delete('host')
      const target = `${sandboxd.url}/workspace/${url.pathname.slice(PREFIX.length)}${url.search}`
      const { method, body, signal } = request
      const response = await fetch(target, { method, headers, body, signal })
      return new Response(response.body, { status: response.status, headers: response.headers })
    },
  })
  const api: FileApi = {
    sandboxd,
    port: server.port ?? 0,
    url: `http://127.0.0.1:${server.port ?? 0}`,
    requests,
    override: undefined,
    [Symbol.asyncDispose]: async () => {
      await server.stop(true)
      await sandboxd.stop()
    },
  }
  return api
}
