import { lstatSync, rmSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { toHostError } from '../data/folder-problem.ts'
import { describeCause, type Log } from '../log.ts'
import { MAX_BODY_BYTES, respondError } from './respond.ts'
import { type ApiDependencies, route } from './routes.ts'

/** Starting a sandbox can take this long on a loaded machine; Bun's default would close the connection. */
const IDLE_TIMEOUT_S = 120
const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/

export interface HostApi {
  readonly socket: string
  close(): Promise<void>
}

export interface HostApiOptions extends ApiDependencies {
  /** Must be in a folder that only this user can enter. */
  readonly socket: string
  readonly dataFolder: string
  readonly log: Log
  readonly nowMs: () => number
  readonly mintRequestId: () => string
}

async function answer(request: Request, requestId: string, options: HostApiOptions): Promise<Response> {
  const startedMs = options.nowMs()
  let name = 'unknown'
  let sandbox: string | undefined
  let response: Response
  let problem: SandwireError | undefined
  try {
    const found = route(request, options)
    if (found === undefined) throw new SandwireError('not_found', 'Cannot answer: no such route')
    ;({ route: name, sandbox } = found)
    response = await found.respond()
  } catch (error) {
    problem = toHostError(error, options.dataFolder)
    response = respondError(problem, requestId)
  }
  const fields = {
    request_id: requestId,
    route: name,
    status: response.status,
    duration_ms: Math.round(options.nowMs() - startedMs),
    ...(sandbox !== undefined && { sandbox }),
  }
  if (problem === undefined) options.log.info('request', fields)
  else {
    const { code, message, cause } = problem
    options.log.warn('request', {
      ...fields,
      code,
      message,
      ...(cause !== undefined && { cause: describeCause(cause) }),
    })
  }
  return response
}

/** Serves the host API on a unix socket, to control and to this user's commands. */
export function serveHostApi(options: HostApiOptions): HostApi {
  const { socket } = options
  // The data folder is locked, so an existing socket was left by a host that crashed.
  if (lstatSync(socket, { throwIfNoEntry: false })?.isSocket() === true) rmSync(socket)
  const umask = process.umask(0o177)
  try {
    const server = Bun.serve({
      unix: socket,
      maxRequestBodySize: MAX_BODY_BYTES,
      fetch: (request, self) => {
        self.timeout(request, IDLE_TIMEOUT_S)
        const given = request.headers.get('x-request-id') ?? ''
        return answer(request, REQUEST_ID.test(given) ? given : options.mintRequestId(), options)
      },
      error: () => respondError(new SandwireError('internal', 'Internal error'), options.mintRequestId()),
    })
    return {
      socket,
      close: async () => {
        await server.stop(true)
        rmSync(socket, { force: true })
      },
    }
  } finally {
    process.umask(umask)
  }
}
