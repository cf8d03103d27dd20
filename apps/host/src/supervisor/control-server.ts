import { chmodSync, rmSync } from 'node:fs'
import { parseStopReason, type StopReason } from '@sandwire/protocol'
import type { SupervisorLog } from './supervisor-log.ts'

/** Operations of a supervisor's control socket. */
export interface ControlTarget {
  readonly status: () => object
  /** Renews the claim. */
  readonly claim: () => void
  /** Begins to stop the sandbox; the state file shows the end. */
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
 * Serves a supervisor's control socket, which only this user can open and which is not visible in the sandbox:
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
        // Frequent, and without effect.
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
        // Pending responses are sent; the process ends soon after.
        void server.stop(false)
        rmSync(path, { force: true })
      },
    }
  } finally {
    process.umask(before)
  }
}
