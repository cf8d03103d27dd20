import {
  decodeSandboxStatus,
  DISK_FULL,
  type HostHealth,
  type SandboxStatus,
  parseSlotAddress,
  type StartSpec,
} from '@sandwire/internal-api'
import { type ErrorCode, SandwireError, shape, type StopReason } from '@sandwire/protocol'
import { withDeadline } from '../http/deadline.ts'
import { readBounded, readBoundedJson } from '../http/read-bounded.ts'
import type { Breaker } from './breaker.ts'
import type { Provider, UpstreamRequest } from './provider.ts'
import { retryIdempotent } from './retry.ts'
import { sendUpstream, unreachable } from './upstream.ts'

/** Starting makes an isolated place and waits for sandboxd in it. Both are until the last byte of the answer. */
const START_TIMEOUT_MS = 30_000
const CALL_TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024
/** More than is ever asked for in one piece. */
const MAX_LOG_BYTES = 2 * 1024 * 1024

/** Codes of the host that mean something to a caller; any other that it says is `sandbox_failed`: it is there. */
const HOST_CODES: Readonly<Record<string, { readonly code: ErrorCode; readonly message: string }>> = {
  sandbox_failed: { code: 'sandbox_failed', message: 'Cannot start the sandbox' },
  too_many_sandboxes: { code: 'too_many_sandboxes', message: 'Cannot start more sandboxes on this machine' },
  provider_unavailable: { code: 'provider_unavailable', message: 'What makes sandboxes does not answer' },
  bad_request: { code: 'bad_request', message: 'Cannot start the sandbox: a setting is not accepted here' },
  shutting_down: { code: 'shutting_down', message: 'Cannot start the sandbox: the machine is stopping' },
}

const FAILED = { code: 'sandbox_failed', message: 'Cannot do this with the sandbox' } as const

const healthShape = shape.record({
  status: shape.literal('ok'),
  version: shape.text(64),
  isolation: shape.oneOf(['bubblewrap', 'container', 'none']),
  sandboxes: shape.offset,
})
const errorShape = shape.record({
  error: shape.record({
    code: shape.text(64),
    message: shape.text(4096),
    request_id: shape.optional(shape.text(128)),
    full_disk: shape.optional(shape.text(4096)),
  }),
})

type FetchLike = (url: string, init: RequestInit) => Promise<Response>

export interface HostProviderDependencies {
  /** Reaches the host API and nothing else. */
  readonly askHost: FetchLike
  /** What reaches the sandbox in a slot; undefined when the host shares no such slot. */
  readonly findSlot: (slot: number) => { readonly fetch: FetchLike } | undefined
  readonly breaker: Breaker
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly random: () => number
  /** Told how long each call took. */
  readonly onCall: (call: string, elapsedMs: number, isOk: boolean) => void
}

interface HostCall {
  readonly name: string
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly requestId: string
  readonly body?: string
  readonly timeoutMs?: number
}

/** Understands an answer until the signal says that it took too long; undefined when it cannot. */
type Read<T> = (response: Response, signal: AbortSignal) => Promise<T | undefined>

/** For answers that hold nothing. */
async function dismiss(response: Response): Promise<true> {
  await response.body?.cancel()
  return true
}

function unavailable(why: string, cause?: unknown): SandwireError {
  return new SandwireError('provider_unavailable', `Cannot reach what makes sandboxes: ${why}`, { cause })
}

/** Makes sandboxes on this machine by asking the host. */
export class HostProvider implements Provider {
  readonly deliversStopReason = true
  readonly survives = { detach: 'processes', stop: 'files', upgrade: 'processes' } as const
  readonly #deps: HostProviderDependencies

  constructor(deps: HostProviderDependencies) {
    this.#deps = deps
  }

  start(spec: StartSpec, requestId: string): Promise<SandboxStatus> {
    const body = JSON.stringify(spec)
    return this.#askStatus(spec.id, {
      name: 'start',
      method: 'PUT',
      path: `/sandboxes/${spec.id}`,
      requestId,
      body,
      timeoutMs: START_TIMEOUT_MS,
    })
  }

  status(id: string, requestId: string): Promise<SandboxStatus> {
    return this.#askStatus(id, { name: 'status', method: 'GET', path: `/sandboxes/${id}`, requestId })
  }

  stop(id: string, requestId: string, reason: StopReason = 'requested'): Promise<SandboxStatus> {
    const path = `/sandboxes/${id}/stop?reason=${reason}`
    return this.#askStatus(id, {
      name: 'stop',
      method: 'POST',
      path,
      requestId,
      timeoutMs: START_TIMEOUT_MS,
    })
  }

  async destroy(id: string, requestId: string): Promise<void> {
    const path = `/sandboxes/${id}`
    const call = { name: 'destroy', method: 'DELETE', path, requestId, timeoutMs: START_TIMEOUT_MS } as const
    await this.#ask(call, dismiss)
  }

  async sever(id: string, requestId: string): Promise<void> {
    await this.#ask(
      { name: 'sever', method: 'POST', path: `/sandboxes/${id}/disconnect`, requestId },
      dismiss,
    )
  }

  async renew(): Promise<void> {
    // The host keeps a sandbox until it is told otherwise.
  }

  logs(id: string, maxBytes: number, requestId: string): Promise<string> {
    const path = `/sandboxes/${id}/logs?bytes=${maxBytes}`
    return this.#ask({ name: 'logs', method: 'GET', path, requestId }, (response, signal) =>
      readBounded(response, MAX_LOG_BYTES, signal),
    )
  }

  health(requestId: string): Promise<HostHealth> {
    return this.#ask(
      { name: 'health', method: 'GET', path: '/health', requestId },
      async (response, signal) =>
        healthShape.decode(await readBoundedJson(response, MAX_ANSWER_BYTES, signal)),
    )
  }

  async fetch(address: string, request: UpstreamRequest): Promise<Response> {
    const slot = parseSlotAddress(address)
    const way = slot === undefined ? undefined : this.#deps.findSlot(slot)
    if (way === undefined) throw unreachable()
    // The name that sandboxd answers to behind a unix socket.
    return sendUpstream((path, init) => way.fetch(`http://localhost${path}`, init), request)
  }

  #askStatus(id: string, call: HostCall): Promise<SandboxStatus> {
    return this.#ask(call, async (response, signal) => {
      const status = decodeSandboxStatus(await readBoundedJson(response, MAX_ANSWER_BYTES, signal))
      return status?.id === id ? status : undefined
    })
  }

  /** Every call of the host API is idempotent, so each may be tried again when the host did not answer. */
  #ask<T>(call: HostCall, read: Read<T>): Promise<T> {
    return retryIdempotent(() => this.#askOnce(call, read), {
      isWorthRetrying: (error) =>
        // An open breaker stays so for longer than the retries last.
        this.#deps.breaker.state.is === 'closed' &&
        error instanceof SandwireError &&
        error.code === 'provider_unavailable',
      sleep: this.#deps.sleep,
      random: this.#deps.random,
    })
  }

  /** An answer that is understood, good or bad, says that the host is there; anything else counts against it. */
  async #askOnce<T>(call: HostCall, read: Read<T>): Promise<T> {
    const { breaker, nowMs, onCall } = this.#deps
    const startedMs = nowMs()
    if (!breaker.admit(startedMs)) throw unavailable('it failed repeatedly, next try in a moment')
    try {
      const deadline = {
        ms: call.timeoutMs ?? CALL_TIMEOUT_MS,
        late: () => unavailable('it does not answer'),
      }
      const answer = await withDeadline(deadline, async (signal) =>
        read(await this.#send(call, signal), signal),
      )
      if (answer === undefined) throw unavailable('its answer is not understood')
      breaker.succeeded()
      onCall(call.name, nowMs() - startedMs, true)
      return answer
    } catch (error) {
      const isAway = error instanceof SandwireError && error.code === 'provider_unavailable'
      if (isAway) breaker.failed(nowMs())
      else breaker.succeeded()
      onCall(call.name, nowMs() - startedMs, false)
      throw error
    }
  }

  async #send({ method, path, requestId, body }: HostCall, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { 'x-request-id': requestId }
    const init: RequestInit = { method, headers, redirect: 'manual', signal }
    if (body !== undefined) {
      headers['content-type'] = 'application/json'
      init.body = body
    }
    let response: Response
    try {
      response = await this.#deps.askHost(`http://host${path}`, init)
    } catch (cause) {
      throw unavailable('it does not answer', cause)
    }
    if (response.ok) return response
    const said = errorShape.decode(await readBoundedJson(response, MAX_ANSWER_BYTES, signal))
    if (said === undefined) throw unavailable(`it answered ${response.status}`)
    const known = Object.hasOwn(HOST_CODES, said.error.code) ? HOST_CODES[said.error.code] : undefined
    const { code, message } = known ?? FAILED
    const isFull = said.error.full_disk !== undefined
    throw new SandwireError(code, isFull ? `${FAILED.message}: ${DISK_FULL}` : message)
  }
}
