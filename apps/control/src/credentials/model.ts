import type { CredentialSettings, ModelPrice } from '@sandwire/operator-settings'
import { withDeadline } from '../http/deadline.ts'
import { readBounded, readToEnd } from '../http/read-bounded.ts'
import type { GatewayGrant } from './grant.ts'
import type { ReserveResult } from './grant-object.ts'
import type { ModelUsage } from './grant-store.ts'
import type { CostBound } from './ledger.ts'
import { UsageMeter } from './meter.ts'
import { type AcceptedRequest, readModelRequest } from './model-request.ts'
import {
  costMicroUsd,
  findPrice,
  isListed,
  type MeteredTokens,
  type OpenProvider,
  openProvider,
  type ReadSecret,
} from './providers.ts'
import { refuseModel } from './refusal.ts'

/** As the provider limits them. */
const MAX_REQUEST_BYTES = 32 * 1024 * 1024
/** A response of 128,000 tokens as a stream of small events. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024
const MAX_ERROR_BYTES = 64 * 1024
const MAX_ERROR_CHARS = 2_000
/** Time to receive the body of a request. */
const BODY_MS = 60_000
/** Time until the response begins; without streaming it begins when the model is done. */
const FIRST_BYTE_MS = 10 * 60_000
/** Whole response. Shorter than the life of a reservation. */
const RESPONSE_MS = 14 * 60_000
/** How long a request waits for others of its run to release their reservations. */
const MAX_WAIT_MS = 60_000
const POLL_MS = 250

/** What programs may state about their request. Everything else, above all credentials, is dropped. */
const REQUEST_HEADERS = ['accept', 'anthropic-beta', 'anthropic-version', 'content-type', 'user-agent']
const RESPONSE_HEADERS = ['content-type', 'request-id', 'retry-after', 'x-should-retry']
/** The beta that lets tokens of subscriptions use the API. */
const OAUTH_BETA = 'oauth-2025-04-20'

/** The grant of a request whose token names it. */
export interface GrantCalls {
  /** Throws `unauthorized` unless the token is valid for the source of the request. */
  authorize(): Promise<GatewayGrant>
  reserve(bound: CostBound): Promise<ReserveResult>
  settle(reservation: string, model: string, usage: ModelUsage): Promise<void>
}

export interface ModelDependencies {
  readonly settings: CredentialSettings
  readonly readSecret: ReadSecret
  readonly fetchUpstream: (url: string, init: RequestInit) => Promise<Response>
  readonly grant: GrantCalls
  /** Keeps work running after the response was returned. */
  readonly hold: (work: Promise<unknown>) => void
  readonly sleep: (ms: number) => Promise<void>
  readonly nowMs: () => number
  /** Reports an outcome for the metrics. */
  readonly count: (outcome: 'ok' | 'refused' | 'exhausted' | 'upstream_error') => void
}

/** A request to a provider: `path` is the path below its base URL. */
export interface ModelRoute {
  readonly provider: string
  readonly path: string
  readonly query: URLSearchParams
}

interface Call {
  readonly request: AcceptedRequest
  readonly provider: OpenProvider
  readonly price: ModelPrice
  /** Absent when nothing is metered. */
  readonly reservation: string | undefined
  readonly body: string
}

async function readBody(request: Request): Promise<string | Response> {
  if (request.headers.has('content-encoding'))
    return refuseModel(400, 'compressed requests are not supported')
  const late = (): Error => new Error('The body was not received in time')
  const read = await withDeadline({ ms: BODY_MS, late }, (signal) =>
    readToEnd(request.body, MAX_REQUEST_BYTES, signal),
  ).catch(() => ({ kind: 'broken' as const }))
  if (read.kind === 'tooLarge')
    return refuseModel(413, `the request is larger than ${MAX_REQUEST_BYTES / 1024 ** 2} MiB`)
  if (read.kind === 'broken') return refuseModel(400, 'the request was not received whole')
  return new TextDecoder().decode(read.bytes)
}

/** Waits while other requests of the run hold the rest of its budget. */
async function reserve(bound: CostBound, { grant, sleep, nowMs }: ModelDependencies): Promise<ReserveResult> {
  const untilMs = nowMs() + MAX_WAIT_MS
  let result = await grant.reserve(bound)
  while (result.kind === 'wait' && nowMs() < untilMs) {
    await sleep(POLL_MS)
    result = await grant.reserve(bound)
  }
  return result
}

/** Checks a request against the lists and the grant, and reserves its cost; otherwise the refusal. */
async function prepare(
  request: Request,
  route: ModelRoute,
  deps: ModelDependencies,
): Promise<Call | Response> {
  const grant = await deps.grant.authorize()
  if (grant.provider !== route.provider)
    return refuseModel(403, `the run may not use model provider "${route.provider}"`)
  const provider = openProvider(route.provider, deps.settings, deps.readSecret)
  if ('problem' in provider) return refuseModel(403, provider.problem)
  if (request.method !== 'POST') return refuseModel(405, 'only POST is allowed')
  const text = await readBody(request)
  if (typeof text !== 'string') return text
  const read = readModelRequest(provider.api, { ...route, method: request.method }, text)
  if (!read.isOk) return refuseModel(read.status, read.message)
  const { model, inputTokens, outputTokens, isMetered } = read.request
  const price = findPrice(provider.prices, model)
  if (price === undefined || (grant.models.length > 0 && !isListed(grant.models, model)))
    return refuseModel(403, `the run may not use model "${model.slice(0, 128)}"`)
  const call = { request: read.request, provider, price }
  if (!isMetered) return { ...call, reservation: undefined, body: text }
  const reserved = await reserve(
    {
      model,
      inputTokens,
      inputMicroUsd: Math.ceil(inputTokens * Math.max(price.input, price.cacheWrite)),
      outputTokens: outputTokens ?? grant.maxOutputTokens,
      outputMicroUsd: price.output,
    },
    deps,
  )
  if (reserved.kind === 'exhausted') {
    deps.count('exhausted')
    return refuseModel(402, reserved.reason)
  }
  if (reserved.kind === 'wait')
    return refuseModel(429, 'other requests of the run hold the rest of its budget', { retryAfterSeconds: 2 })
  return { ...call, reservation: reserved.id, body: read.request.withOutput(reserved.outputTokens) }
}

function upstreamHeaders(given: Headers, { authentication, api, secret }: OpenProvider): Headers {
  const headers = new Headers()
  for (const name of REQUEST_HEADERS) {
    const value = given.get(name)
    if (value !== null) headers.set(name, value)
  }
  if (api === 'anthropic' && secret === 'CLAUDE_CODE_OAUTH_TOKEN')
    headers.set('anthropic-beta', [OAUTH_BETA, ...(given.get('anthropic-beta')?.split(',') ?? [])].join(','))
  // Events would wait for the end of a compressed block.
  headers.set('accept-encoding', 'identity')
  for (const [name, value] of Object.entries(authentication)) headers.set(name, value)
  return headers
}

function responseHeaders(given: Headers): Headers {
  const headers = new Headers({ 'cache-control': 'no-store' })
  for (const name of RESPONSE_HEADERS) {
    const value = given.get(name)
    if (value !== null) headers.set(name, value)
  }
  return headers
}

function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((left, secret) => left.replaceAll(secret, '[redacted]'), text)
}

/** The text of an error, in either API's format. */
function messageOf(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } }
    return typeof error?.message === 'string' ? error.message : undefined
  } catch {
    // Not JSON, such as a proxy's page.
    return undefined
  }
}

/** Passes on status and message of an error, which clients act on, but nothing else of it. */
async function passError(response: Response, { secrets, secret, id }: OpenProvider): Promise<Response> {
  const { status } = response
  const text = await readBounded(response, MAX_ERROR_BYTES).catch(() => undefined)
  if (status === 401 || status === 403)
    return refuseModel(403, `model provider "${id}" refuses the operator's key (${status}); check ${secret}`)
  if (status < 400) return refuseModel(403, `model provider "${id}" sent an unexpected response (${status})`)
  const message = redact(messageOf(text ?? '') ?? `model provider "${id}" responded with ${status}`, secrets)
  const headers = responseHeaders(response.headers)
  headers.set('content-type', 'application/json')
  const type =
    status === 429
      ? 'rate_limit_error'
      : status === 529
        ? 'overloaded_error'
        : status < 500
          ? 'invalid_request_error'
          : 'api_error'
  const body = { type: 'error', error: { type, message: message.slice(0, MAX_ERROR_CHARS) } }
  return new Response(JSON.stringify(body), { status, headers })
}

/** workerd ends a response whose body failed like a complete one, so that a stream that broke says so in an event. */
const BROKEN_EVENT = `\n\nevent: error\ndata: ${JSON.stringify({
  type: 'error',
  error: { type: 'api_error', message: 'Sandwire: the connection to the model API broke' },
})}\n\n`

/** Copies a stream as it is received, and meters it. */
async function copyMetered(
  source: ReadableStream<Uint8Array>,
  target: WritableStream<Uint8Array>,
  meter: UsageMeter,
  signal: AbortSignal,
): Promise<void> {
  const reader = source.getReader()
  const writer = target.getWriter()
  const abort = (): void =>
    void Promise.allSettled([reader.cancel(signal.reason), writer.abort(signal.reason)])
  signal.addEventListener('abort', abort, { once: true })
  let received = 0
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      meter.push(read.value)
      received += read.value.byteLength
      if (received > MAX_RESPONSE_BYTES) throw new Error('The response is too large')
      await writer.write(read.value)
    }
    // A canceled stream looks like a complete one.
    signal.throwIfAborted()
    await writer.close()
  } catch (error) {
    const notice = signal.aborted ? undefined : writer.write(new TextEncoder().encode(BROKEN_EVENT))
    await Promise.allSettled([reader.cancel(error), notice?.then(() => writer.close())])
    await writer.abort(error).catch(() => undefined)
  }
}

/** Settles a reservation once, when the response has ended. */
class Settlement {
  readonly #settle: (usage: ModelUsage) => Promise<void>
  readonly #price: ModelPrice
  readonly #done = Promise.withResolvers<void>()
  #isDone = false

  constructor(price: ModelPrice, settle: (usage: ModelUsage) => Promise<void>) {
    this.#price = price
    this.#settle = settle
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  settle({ longCacheWriteTokens, ...tokens }: MeteredTokens): void {
    if (this.#isDone) return
    this.#isDone = true
    const cost = costMicroUsd(this.#price, { longCacheWriteTokens, ...tokens })
    this.#settle({ ...tokens, costMicroUsd: cost }).then(this.#done.resolve, this.#done.reject)
  }
}

const NOTHING_USED: MeteredTokens = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  longCacheWriteTokens: 0,
}

/** Sends a prepared request, and settles its reservation by what the response used. */
async function send(call: Call, request: Request, deps: ModelDependencies): Promise<Response> {
  const { provider, reservation, body, price } = call
  const { model, path, inputTokens } = call.request
  const settlement = new Settlement(price, async (usage) => {
    if (reservation !== undefined) await deps.grant.settle(reservation, model, usage)
  })
  deps.hold(settlement.done)
  const controller = new AbortController()
  const abort = (): void => controller.abort(new Error('The gateway ended the request'))
  request.signal.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(abort, FIRST_BYTE_MS)
  let response: Response
  try {
    response = await deps.fetchUpstream(`${provider.baseUrl}${path}`, {
      method: 'POST',
      headers: upstreamHeaders(request.headers, provider),
      body,
      redirect: 'manual',
      signal: controller.signal,
    })
  } catch {
    deps.count('upstream_error')
    settlement.settle(NOTHING_USED)
    return refuseModel(502, `model provider "${provider.id}" does not respond`)
  } finally {
    clearTimeout(timer)
  }
  if (response.status !== 200) {
    deps.count('upstream_error')
    settlement.settle(NOTHING_USED)
    return passError(response, provider)
  }
  deps.count('ok')
  const meter = new UsageMeter(provider.api)
  const end = (): void => settlement.settle(meter.result(inputTokens))
  const headers = responseHeaders(response.headers)
  if (
    response.body === null ||
    !(response.headers.get('content-type') ?? '').startsWith('text/event-stream')
  ) {
    const text = await readBounded(response, MAX_RESPONSE_BYTES, controller.signal).catch(() => undefined)
    if (text !== undefined) meter.readBody(text)
    end()
    if (text === undefined) return refuseModel(502, `the response of "${provider.id}" is incomplete`)
    return new Response(redact(text, provider.secrets), { headers })
  }
  const deadline = setTimeout(abort, RESPONSE_MS)
  const { readable, writable } = new IdentityTransformStream()
  const source = response.body as ReadableStream<Uint8Array>
  const copied = copyMetered(source, writable, meter, controller.signal).finally(() => {
    clearTimeout(deadline)
    end()
  })
  deps.hold(copied)
  return new Response(readable, { headers })
}

/** Handles a request of an agent to a model API. */
export async function handleModel(
  request: Request,
  route: ModelRoute,
  deps: ModelDependencies,
): Promise<Response> {
  const prepared = await prepare(request, route, deps)
  if (!(prepared instanceof Response)) return send(prepared, request, deps)
  if (prepared.status !== 402) deps.count('refused')
  return prepared
}
