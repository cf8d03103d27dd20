import { type RunningSandboxd, startSandboxd } from './sandboxd.ts'

/** Control's routes for the files of one sandbox, on a real sandboxd. */
export interface WorkspaceDoor extends AsyncDisposable {
  readonly sandboxd: RunningSandboxd
  readonly port: number
  readonly url: string
  /** Method and path of every request so far. */
  readonly asked: readonly string[]
  /** Answers instead, as long as it has something to say. */
  instead: ((request: Request, url: URL) => Response | undefined) | undefined
}

/** The sandbox that it has. */
export const BOX = 'box'

const PREFIX = `/api/workspaces/${BOX}/`

/** Opens a stand-in for control that passes requests about files on, both ways as streams. */
export async function openWorkspaceDoor(): Promise<WorkspaceDoor> {
  const sandboxd = await startSandboxd()
  const asked: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: async (request) => {
      const url = new URL(request.url)
      asked.push(`${request.method} ${url.pathname}`)
      const other = door.instead?.(request, url)
      if (other !== undefined) return other
      if (!url.pathname.startsWith(PREFIX)) return new Response('', { status: 404 })
      const headers = new Headers(request.headers)
      headers.set('authorization', sandboxd.headers.authorization)
      headers.delete('host')
      const target = `${sandboxd.url}/workspace/${url.pathname.slice(PREFIX.length)}${url.search}`
      const { method, body, signal } = request
      const answer = await fetch(target, { method, headers, body, signal })
      return new Response(answer.body, { status: answer.status, headers: answer.headers })
    },
  })
  const door: WorkspaceDoor = {
    sandboxd,
    port: server.port ?? 0,
    url: `http://127.0.0.1:${server.port ?? 0}`,
    asked,
    instead: undefined,
    [Symbol.asyncDispose]: async () => {
      await server.stop(true)
      await sandboxd.stop()
    },
  }
  return door
}
