import {
  decodeSandboxStatus,
  DISK_FULL,
  explainStartFailure,
  MAX_SLOTS,
  type HostHealth,
  type SandboxStatus,
  parseSlotAddress,
  StartFailure,
  type StartSpec,
} from '@sandwire/internal-api'
import { type ErrorCode, SandwireError, schema, type StopReason } from '@sandwire/protocol'
import { withDeadline } from '../http/deadline.ts'
import { readBounded, readBoundedJson } from '../http/read-bounded.ts'
import type { Breaker } from './breaker.ts'
import type { Provider, UpstreamRequest } from './provider.ts'
import { retryIdempotent } from './retry.ts'
import { sendUpstream, unreachable } from './upstream.ts'

/** A start creates the isolation and waits for sandboxd. Timeouts are until the last byte of the response. */
const START_TIMEOUT_MS = 30_000
const CALL_TIMEOUT_MS = 10_000
const MAX_RESPONSE_BYTES = 64 * 1024
const MAX_LIST_BYTES = 1024 * 1024
/** More than is ever requested at once. */
const MAX_LOG_BYTES = 2 * 1024 * 1024

/** Errors for the codes of the host; any other code is `sandbox_failed`. */
const HOST_CODES: Readonly<Record<string, { readonly code: ErrorCode; readonly message: string }>> = {
  sandbox_failed: { code: 'sandbox_failed', message: 'Cannot start the sandbox' },
  too_many_sandboxes: { code: 'too_many_sandboxes', message: 'Cannot start more sandboxes on this machine' },
  provider_unavailable: { code: 'provider_unavailable', message: 'The host does not respond' },
  bad_request: { code: 'bad_request', message: 'Cannot start the sandbox: the host refuses a setting' },
  shutting_down: { code: 'shutting_down', message: 'Cannot start the sandbox: the machine is stopping' },
}

const FAILED = { code: 'sandbox_failed', message: 'Cannot change the sandbox' } as const

const healthSchema = schema.record({
  status: schema.literal('ok'),
  version: schema.text(64),
  isolation: schema.oneOf(['bubblewrap', 'container', 'none']),
  sandboxes: schema.nonNegativeInteger,
  disk: schema.optional(
    schema.record({
      status: schema.oneOf(['ok', 'low', 'full']),
      freeBytes: schema.nonNegativeInteger,
      reserveBytes: schema.nonNegativeInteger,
    }),
  ),
})
const runningSchema = schema.record({ ids: schema.list(schema.text(32), MAX_SLOTS) })
const errorSchema = schema.record({
  error: schema.record({
    code: schema.text(64),
    message: schema.text(4096),
    request_id: schema.optional(schema.text(128)),
    full_disk: schema.optional(schema.text(4096)),
    missing_file: schema.optional(schema.text(4096)),
    start_failure: schema.optional(schema.text(64, /^\w+$/)),
  }),
})

type FetchLike = (url: string, init: RequestInit) => Promise<Response>

export interface HostProviderDependencies {
  /** Sends a request to the host API. */
  readonly fetchHost: FetchLike
  /** The binding of a slot; undefined when there is none. */
  readonly findSlot: (slot: number) => { readonly fetch: FetchLike } | undefined
  readonly breaker: Breaker
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly random: () => number
}

interface HostCall {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly requestId: string
  readonly body?: string
  readonly timeoutMs?: number
}

/** Reads a response until the signal is aborted; undefined when it is malformed. */
type Read<T> = (response: Response, signal: AbortSignal) => Promise<T | undefined>

/** For responses without a body. */
async function discard(response: Response): Promise<true> {
  await response.body?.cancel()
  return true
}

function unavailable(problem: string, cause?: unknown): SandwireError {
  return new SandwireError('provider_unavailable', `Cannot use the host: ${problem}`, { cause })
}

function missingFiles(file: string): SandwireError {
  return new SandwireError(
    'files_missing',
    `Cannot start the sandbox: its files are missing or damaged, "${file}" in the data folder of the server. The operator can mount the disk that holds them or restore a backup`,
  )
}

function failedStart(reason: string): SandwireError {
  const message = `Cannot start the sandbox: ${explainStartFailure(reason)}`
  return new SandwireError('sandbox_failed', message, { cause: new StartFailure(reason) })
}

/** Runs sandboxes on this machine through the host API. */
export class HostProvider implements Provider {
  readonly deliversStopReason = true
  readonly survives = { detach: 'processes', stop: 'files', upgrade: 'processes' } as const
  readonly #deps: HostProviderDependencies

  constructor(deps: HostProviderDependencies) {
    this.#deps = deps
  }

  start(spec: StartSpec, requestId: string): Promise<SandboxStatus> {
    const body = JSON.stringify(spec)
    return this.#requestStatus(spec.id, {
      method: 'PUT',
      path: `/sandboxes/${spec.id}`,
      requestId,
      body,
      timeoutMs: START_TIMEOUT_MS,
    })
  }

  status(id: string, requestId: string): Promise<SandboxStatus> {
    return this.#requestStatus(id, { method: 'GET', path: `/sandboxes/${id}`, requestId })
  }

  stop(id: string, requestId: string, reason: StopReason = 'requested'): Promise<SandboxStatus> {
    const path = `/sandboxes/${id}/stop?reason=${reason}`
    return this.#requestStatus(id, {
      method: 'POST',
      path,
      requestId,
      timeoutMs: START_TIMEOUT_MS,
    })
  }

  async destroy(id: string, requestId: string): Promise<void> {
    const path = `/sandboxes/${id}`
    const call = { method: 'DELETE', path, requestId, timeoutMs: START_TIMEOUT_MS } as const
    await this.#request(call, discard)
  }

  async disconnectAll(id: string, requestId: string): Promise<void> {
    await this.#request({ method: 'POST', path: `/sandboxes/${id}/disconnect`, requestId }, discard)
  }

  async renew(): Promise<void> {
    // The host runs a sandbox until it is stopped.
  }

  logs(id: string, maxBytes: number, requestId: string): Promise<string> {
    const path = `/sandboxes/${id}/logs?bytes=${maxBytes}`
    return this.#request({ method: 'GET', path, requestId }, (response, signal) =>
      readBounded(response, MAX_LOG_BYTES, signal),
    )
  }

  health(requestId: string): Promise<HostHealth> {
    return this.#request({ method: 'GET', path: '/health', requestId }, async (response, signal) =>
      healthSchema.decode(await readBoundedJson(response, MAX_RESPONSE_BYTES, signal)),
    )
  }

  /** Ids of the running sandboxes, of all accounts. */
  async running(requestId: string): Promise<ReadonlySet<string>> {
    const path = '/running'
    const { ids } = await this.#request({ method: 'GET', path, requestId }, async (response, signal) =>
      runningSchema.decode(await readBoundedJson(response, MAX_LIST_BYTES, signal)),
    )
    return new Set(ids)
  }

  async fetch(address: string, request: UpstreamRequest): Promise<Response> {
    const slot = parseSlotAddress(address)
    const binding = slot === undefined ? undefined : this.#deps.findSlot(slot)
    if (binding === undefined) throw unreachable()
    // The host name that sandboxd expects on a unix socket.
    return sendUpstream((path, init) => binding.fetch(`http://localhost${path}`, init), request)
  }

  #requestStatus(id: string, call: HostCall): Promise<SandboxStatus> {
    return this.#request(call, async (response, signal) => {
      const status = decodeSandboxStatus(await readBoundedJson(response, MAX_RESPONSE_BYTES, signal))
      return status?.id === id ? status : undefined
    })
  }

  /** Every call of the host API is idempotent, so it is retried when the host did not respond. */
  #request<T>(call: HostCall, read: Read<T>): Promise<T> {
    return retryIdempotent(() => this.#requestOnce(call, read), {
      isWorthRetrying: (error) =>
        // A breaker stays open for longer than the retries take.
        this.#deps.breaker.state.kind === 'closed' &&
        error instanceof SandwireError &&
        error.code === 'provider_unavailable',
      sleep: this.#deps.sleep,
      random: this.#deps.random,
    })
  }

  /** Any valid response, also an error, counts as success for the circuit breaker. */
  async #requestOnce<T>(call: HostCall, read: Read<T>): Promise<T> {
    const { breaker, nowMs } = this.#deps
    if (!breaker.admit(nowMs())) throw unavailable('it failed repeatedly; try again in a moment')
    try {
      const deadline = {
        ms: call.timeoutMs ?? CALL_TIMEOUT_MS,
        late: () => unavailable('it does not respond'),
      }
      const value = await withDeadline(deadline, async (signal) =>
        read(await this.#send(call, signal), signal),
      )
      if (value === undefined) throw unavailable('it sent an invalid response')
      breaker.succeeded()
      return value
    } catch (error) {
      const isDown = error instanceof SandwireError && error.code === 'provider_unavailable'
      if (isDown) breaker.failed(nowMs())
      else breaker.succeeded()
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
      response = await this.#deps.fetchHost(`http://host${path}`, init)
    } catch (cause) {
      throw unavailable('it does not respond', cause)
    }
    if (response.ok) return response
    const failure = errorSchema.decode(await readBoundedJson(response, MAX_RESPONSE_BYTES, signal))
    if (failure === undefined) throw unavailable(`it responded with ${response.status}`)
    const { code: hostCode, full_disk, missing_file, start_failure } = failure.error
    if (missing_file !== undefined) throw missingFiles(missing_file)
    if (start_failure !== undefined) throw failedStart(start_failure)
    const { code, message } =
      (Object.hasOwn(HOST_CODES, hostCode) ? HOST_CODES[hostCode] : undefined) ?? FAILED
    throw new SandwireError(code, full_disk === undefined ? message : `${FAILED.message}: ${DISK_FULL}`)
  }
}
