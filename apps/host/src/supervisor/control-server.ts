import { chmodSync, rmSync } from 'node:fs'
import { parseStopReason, type StopReason } from '@sandwire/protocol'
import type { SupervisorLog } from './supervisor-log.ts'

/** What can be stopRequested of a supervisor. */
export interface ControlTarget {
  readonly status: () => object
  /** Says that the sandbox is wanted. */
  readonly claim: () => void
  /** Begins to end the sandbox; the state file says when it has ended. */
  readonly stop: (reason: StopReason) => void
}

const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/

function answer(route: string, query: URLSearchParams, target: ControlTarget): Response {
  switch (route) {
    case 'GET /status':
      return Response.json(target.status())
    case 'POST /claim':
      target.claim()
      return new Response(null, { status: 204 })
    case 'POST /stop':
      target.stop(parseStopReason(query.get('reason')) ?? 'requested')
      return new Response(null, { status: 202 })
    default:
      return new Response(null, { status: 404 })
  }
}

/**
 * Serves a supervisor's control socket, which only this user can open and nothing inside the sandbox sees:
 * `GET /status`, `POST /claim`, `POST /stop?reason=`.
 */
export function serveControl(path: string, target: ControlTarget, log: SupervisorLog): Disposable {
  rmSync(path, { force: true })
  const before = process.umask(0o177)
  try {
    const server = Bun.serve({
      unix: path,
      development: false,
      fetch: (request) => {
        const { pathname, searchParams } = new URL(request.url)
        const route = `${request.method} ${pathname}`
        const response = answer(route, searchParams, target)
        const requestId = request.headers.get('x-request-id') ?? ''
        // Looks and claims come all the time and change nothing.
        if (route !== 'GET /status' && route !== 'POST /claim')
          log.info('control', {
            ...(REQUEST_ID.test(requestId) && { request_id: requestId }),
            ...(response.status !== 404 && { route }),
            status: response.status,
          })
        return response
      },
      error: () => new Response(null, { status: 500 }),
    })
    chmodSync(path, 0o600)
    return {
      [Symbol.dispose]: () => {
        // Answers in flight are let through; the process ends soon after.
        void server.stop(false)
        rmSync(path, { force: true })
      },
    }
  } finally {
    process.umask(before)
  }
}
