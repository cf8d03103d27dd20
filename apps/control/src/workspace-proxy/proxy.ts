import { SandwireError } from '@sandwire/protocol'
import { CODE_HEADER } from '../http/respond.ts'
import type { Breakers } from '../providers/breaker.ts'
import { retryIdempotent } from '../providers/retry.ts'
import type { SandboxLifecycle } from '../sandbox/lifecycle.ts'
import { type Caller, invalidResponse, type SandboxdClient } from '../sandbox/sandboxd-client.ts'
import type { SandboxSessions } from '../sandbox/sessions.ts'
import type { SandboxStore } from '../sandbox/store.ts'
import type { WorkspaceCall } from './call.ts'
import { readUpstreamError, unavailable } from './errors.ts'
import { contentType, responseHeaders, responseLength } from './headers.ts'
import type { ProxiedRequest, ProxiedRequests } from './requests.ts'
import type { ProxyRoute } from './route.ts'
import { findProxyRoute } from './routes.ts'
import { streamBody } from './stream-body.ts'

/** Marks an error response that already has its final body, for the Worker. */
export const FINAL_BODY_HEADER = 'x-sandwire-final-body'

/** Statuses that are passed on. Redirects are not: a sandbox must not choose where a client goes. */
const PASSED_STATUS: ReadonlySet<number> = new Set([200, 201, 202, 204, 206, 304])

/** Until an error response must end, which is read here. */
const ERROR_RESPONSE_MS = 10_000

export interface ProxyDependencies {
  readonly lifecycle: SandboxLifecycle
  readonly sessions: SandboxSessions
  readonly store: SandboxStore
  readonly requests: ProxiedRequests
  readonly breakers: Breakers
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly random: () => number
  /** Keeps the object alive until the work is done. */
  readonly hold: (work: Promise<unknown>) => void
}

/** The client's side of a call. */
export interface ClientRequest {
  readonly body: ReadableStream<Uint8Array> | null
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

interface Upstream {
  readonly response: Response
  readonly request: ProxiedRequest
}

function tooLarge(maxBytes: number): SandwireError {
  return new SandwireError('file_too_large', `The file is larger than ${maxBytes} bytes; request a range`)
}

function isUnreachable(error: unknown): boolean {
  return error instanceof SandwireError && error.code === 'sandbox_unreachable'
}

function pathOf({ upstream }: ProxyRoute, { id, query }: WorkspaceCall): string {
  const path = upstream.replace(':id', id ?? '')
  return query === '' ? path : `${path}?${query}`
}

/**
 * Proxies file requests through a sandbox's object. Bodies are streamed both ways and never buffered. A stopped sandbox is
 * started only where it serves a folder of this machine.
 */
export class WorkspaceProxy {
  readonly #deps: ProxyDependencies

  constructor(deps: ProxyDependencies) {
    this.#deps = deps
  }

  /** Sends a request to sandboxd and returns its response; throws when there is none that may be passed on. */
  async handle(call: WorkspaceCall, client: ClientRequest): Promise<Response> {
    const { lifecycle, store, breakers, nowMs } = this.#deps
    const route = findProxyRoute(call.route)
    if (route === undefined) throw new Error('Unknown workspace route')
    const { record } = lifecycle.authorize(call, 'work')
    if (!breakers.admit(record.id, nowMs())) throw unavailable(1_000)
    if (route.access === 'change') store.touch(nowMs())
    const upstream = await this.#counted(record.id, () => this.#request(call, route, client))
    try {
      return await this.#respond(call, route, upstream)
    } catch (error) {
      upstream.request.end()
      throw error
    }
  }

  /** Counts for the sandbox's circuit breaker: any response but 503 is a success. */
  async #counted(sandbox: string, send: () => Promise<Upstream>): Promise<Upstream> {
    const { breakers, nowMs } = this.#deps
    try {
      const upstream = await send()
      if (upstream.response.status === 503) breakers.failed(sandbox, nowMs())
      else breakers.succeeded(sandbox)
      return upstream
    } catch (caught) {
      const isDown = isUnreachable(caught)
      const isLate = caught instanceof SandwireError && caught.code === 'timed_out'
      if (isDown || isLate) breakers.failed(sandbox, nowMs())
      throw isDown ? unavailable() : caught
    }
  }

  #request(call: WorkspaceCall, route: ProxyRoute, client: ClientRequest): Promise<Upstream> {
    const { sessions, sleep, random } = this.#deps
    const isIdempotent = route.isIdempotent && client.body === null
    let isBodyUsed = false
    const entry = { need: 'work', mayStart: call.mayStart, isIdempotent } as const
    return sessions.reach(call, entry, ({ address }, sandboxd, caller) => {
      const send = (): Promise<Upstream> => {
        // A stream can be sent only once.
        if (isBodyUsed) throw unavailable()
        isBodyUsed = client.body !== null
        return this.#send(call, route, { address, sandboxd, caller, client })
      }
      return isIdempotent ? retryIdempotent(send, { isWorthRetrying: isUnreachable, sleep, random }) : send()
    })
  }

  /** One attempt. */
  async #send(
    call: WorkspaceCall,
    route: ProxyRoute,
    target: {
      readonly address: string
      readonly sandboxd: SandboxdClient
      readonly caller: Caller
      readonly client: ClientRequest
    },
  ): Promise<Upstream> {
    const { address, sandboxd, caller, client } = target
    // In the turn in which the caller was authorized, so that a revocation finds the request.
    const request = this.#deps.requests.open(caller)
    try {
      request.follow(client.signal)
      const stream = this.#upload(route, request, { body: client.body, length: call.length })
      const response = await sandboxd.fetch(address, caller, {
        method: call.isHead ? 'HEAD' : route.method,
        path: pathOf(route, call),
        headers: call.headers,
        signal: request.signal,
        ...(stream === undefined ? {} : { stream }),
      })
      request.beginResponse(PASSED_STATUS.has(response.status) ? route.lastByteMs : ERROR_RESPONSE_MS)
      return { response, request }
    } catch (error) {
      request.end()
      throw error
    }
  }

  /** Streams the request body. The timeout for the response starts when all of it is sent, or at once without a body. */
  #upload(
    { firstByteMs, lastByteMs, body: { maxBytes } }: ProxyRoute,
    request: ProxiedRequest,
    {
      body,
      length,
    }: { readonly body: ReadableStream<Uint8Array> | null; readonly length?: number | undefined },
  ): ReadableStream<Uint8Array> | undefined {
    request.expectResponse(body === null ? firstByteMs : lastByteMs)
    if (body === null) return undefined
    const streamed = streamBody(body, {
      length,
      maxBytes,
      signal: request.signal,
      onTooLarge: (reason) => request.refuse(reason),
      writeTimeout: { ms: firstByteMs, onTimeout: () => request.timeOutBody() },
    })
    // A failed upload is reported by the request itself.
    const sent = streamed.done.catch(() => undefined).then(() => request.expectResponse(firstByteMs))
    this.#deps.hold(sent)
    return streamed.body
  }

  async #respond(
    call: WorkspaceCall,
    { response: allowed, api }: ProxyRoute,
    { response, request }: Upstream,
  ): Promise<Response> {
    const { status, headers } = response
    const body: ReadableStream<Uint8Array> | null = response.body
    if (!PASSED_STATUS.has(status)) {
      const { isHead, requestId } = call
      const failure = await readUpstreamError(response, { api, isHead, signal: request.signal })
      if (failure.kind === 'error') throw failure.error
      request.end()
      const code = { [CODE_HEADER]: failure.code, [FINAL_BODY_HEADER]: '1' }
      return Response.json(failure.body(requestId), { status, headers: code })
    }
    const length = responseLength(status, headers)
    const hasBody = body !== null && status !== 204 && status !== 304
    const isBounded = length === undefined ? allowed.hasEndMarker : length >= 0 && length <= allowed.maxBytes
    const isTyped = contentType(headers) === allowed.type && !headers.has('content-encoding')
    if (hasBody && !(isBounded && isTyped)) {
      await body?.cancel()
      const isLarge = !allowed.hasEndMarker && isTyped && length !== undefined && length > allowed.maxBytes
      throw isLarge ? tooLarge(allowed.maxBytes) : invalidResponse()
    }
    const passed = new Headers(responseHeaders(headers))
    if (!hasBody) {
      request.end()
      if (call.isHead && length !== undefined) {
        passed.set('content-type', allowed.type)
        passed.set('content-length', String(length))
      }
      return new Response(null, { status, headers: passed })
    }
    passed.set('content-type', allowed.type)
    const { maxBytes } = allowed
    const streamed = streamBody(body, {
      length,
      maxBytes,
      signal: request.signal,
      onTooLarge: (reason) => request.abort(reason),
    })
    // The client or sandboxd may disconnect; nothing is left to report then.
    this.#deps.hold(streamed.done.catch(() => undefined).then(() => request.end()))
    return new Response(streamed.body, { status, headers: passed })
  }
}
