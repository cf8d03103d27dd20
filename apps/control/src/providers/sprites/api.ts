import { SandwireError, schema } from '@sandwire/protocol'
import { withDeadline } from '../../http/deadline.ts'
import { readBounded, readBoundedBytes, readBoundedJson } from '../../http/read-bounded.ts'
import type { Breaker } from '../breaker.ts'
import { retryIdempotent } from '../retry.ts'
import { SpritesError } from './errors.ts'

/** A request, with the body of its response. */
const CALL_MS = 30_000
/** Creating a sprite, and changing its services. */
const SLOW_MS = 120_000
const MAX_JSON_BYTES = 1024 * 1024
const MAX_LOG_BYTES = 4 * 1024 * 1024
/** Output of a command that the provider runs. */
const MAX_OUTPUT_BYTES = 256 * 1024

export interface SpritesSettings {
  /** Origin of the API. */
  readonly baseUrl: string
  readonly token: string
}

export interface SpritesApiDependencies {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly breaker: Breaker
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly random: () => number
}

/** A state that the API reports; unknown ones are treated as running. */
export type SpriteStatus = 'cold' | 'warm' | 'running'

export interface Service {
  readonly status: string
  /** Changes with every start of its process. */
  readonly process: string
  /** Its definition's environment. */
  readonly env: Readonly<Record<string, string>>
}

export interface ServiceDefinition {
  readonly cmd: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export interface SpriteCheckpoint {
  readonly id: string
  readonly createdMs: number
  readonly comment: string | undefined
}

/** A process of the exec API that runs. */
export interface RunningExec {
  readonly id: string
  readonly createdMs: number
  readonly command: string
}

interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below `/v1/sprites`. */
  readonly path: string
  readonly body?: string
  readonly timeoutMs?: number
  /** Statuses that are answers, not failures. */
  readonly accepts?: readonly number[]
  /** Repeating it changes nothing. */
  readonly isIdempotent?: boolean
}

const text = schema.text(4096)

/** A field of an untrusted object; undefined if there is none. */
function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

function textOf(value: unknown, name: string): string | undefined {
  return text.decode(fieldOf(value, name))
}

function decodeEnv(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  )
}

/** Calls the Sprites API, with retries for what may be repeated and a circuit breaker. */
export class SpritesApi {
  readonly #settings: SpritesSettings
  readonly #deps: SpritesApiDependencies

  constructor(settings: SpritesSettings, deps: SpritesApiDependencies) {
    this.#settings = settings
    this.#deps = deps
  }

  /** Undefined: no such sprite. */
  async sprite(name: string): Promise<SpriteStatus | undefined> {
    const found = await this.#json({ method: 'GET', path: `/${name}`, accepts: [404], isIdempotent: true })
    if (found === undefined) return undefined
    const status = textOf(found, 'status')
    return status === 'cold' || status === 'warm' ? status : 'running'
  }

  /** Throws unless the token may list sprites. */
  async check(): Promise<void> {
    await this.#json({ method: 'GET', path: '?max_results=1', isIdempotent: true })
  }

  /** Creates a sprite unless it exists. */
  async create(name: string): Promise<void> {
    const body = JSON.stringify({ name, url_settings: { auth: 'sprite' } })
    await this.#send({ method: 'POST', path: '', body, accepts: [409], timeoutMs: SLOW_MS }, discard)
  }

  async destroy(name: string): Promise<void> {
    await this.#send({ method: 'DELETE', path: `/${name}`, accepts: [404], isIdempotent: true }, discard)
  }

  /** Undefined: no such service. */
  async service(sprite: string, name: string): Promise<Service | undefined> {
    const path = `/${sprite}/services/${name}`
    const found = await this.#json({ method: 'GET', path, accepts: [404], isIdempotent: true })
    if (found === undefined) return undefined
    const state = fieldOf(found, 'state')
    return {
      status: textOf(state, 'status') ?? 'failed',
      process: `${schema.nonNegativeInteger.decode(fieldOf(state, 'pid')) ?? ''}-${textOf(state, 'started_at') ?? ''}`,
      env: decodeEnv(fieldOf(found, 'env')),
    }
  }

  /** Defines a service and starts it, or restarts it with another definition. */
  async putService(sprite: string, name: string, definition: ServiceDefinition): Promise<void> {
    const path = `/${sprite}/services/${name}?duration=1s`
    const body = JSON.stringify(definition)
    await this.#send({ method: 'PUT', path, body, timeoutMs: SLOW_MS, isIdempotent: true }, discard)
  }

  /** Stops a service and deletes its definition, so that it does not start when the sprite wakes. */
  async deleteService(sprite: string, name: string): Promise<void> {
    const path = `/${sprite}/services/${name}`
    const options = { accepts: [404, 409], isIdempotent: true, timeoutMs: SLOW_MS } as const
    await this.#send({ method: 'POST', path: `${path}/stop?timeout=10s`, ...options }, discard)
    await this.#send({ method: 'DELETE', path, ...options }, discard)
  }

  /** The last lines that a service wrote. */
  async serviceLogs(sprite: string, name: string, lines: number): Promise<string> {
    const path = `/${sprite}/services/${name}/logs?lines=${lines}`
    const events = await this.#send(
      { method: 'GET', path, accepts: [404], isIdempotent: true },
      (response, signal) => (response.status === 404 ? '' : readBounded(response, MAX_LOG_BYTES, signal)),
    )
    return events
      .split('\n')
      .map((line) => textOfLine(line))
      .filter((line) => line !== undefined)
      .join('\n')
  }

  async writeFile(sprite: string, file: string, content: string, mode: string): Promise<void> {
    const query = new URLSearchParams({ path: file, mode, mkdirParents: 'true' })
    const path = `/${sprite}/fs/write?${query.toString()}`
    await this.#send({ method: 'PUT', path, body: content, isIdempotent: true }, discard)
  }

  async hasFile(sprite: string, file: string): Promise<boolean> {
    const path = `/${sprite}/fs/list?${new URLSearchParams({ path: file }).toString()}`
    return (await this.#json({ method: 'GET', path, accepts: [404], isIdempotent: true })) !== undefined
  }

  /** Runs a short command; returns its exit code. The frames of its output may be merged, so only the last byte is read. */
  async run(sprite: string, argv: readonly string[]): Promise<number> {
    const query = new URLSearchParams(argv.map((argument) => ['cmd', argument]))
    const path = `/${sprite}/exec?${query.toString()}`
    const output = await this.#send({ method: 'POST', path, timeoutMs: SLOW_MS }, (response, signal) =>
      readBoundedBytes(response, MAX_OUTPUT_BYTES, signal),
    )
    return new Uint8Array(output).at(-1) ?? 255
  }

  /** The processes that were started by exec. */
  async execs(sprite: string): Promise<readonly RunningExec[]> {
    const listed = fieldOf(
      await this.#json({ method: 'GET', path: `/${sprite}/exec`, isIdempotent: true }),
      'sessions',
    )
    if (!Array.isArray(listed)) throw new SpritesError('invalid_response')
    return listed.flatMap((each: unknown) => {
      const id = textOf(each, 'id')
      const createdMs = Date.parse(textOf(each, 'created') ?? '')
      const isValid = id !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(id) && !Number.isNaN(createdMs)
      return isValid ? [{ id, createdMs, command: textOf(each, 'command') ?? '' }] : []
    })
  }

  /** Signals a process of exec, and kills it if it still runs after the time. One that has ended is not an error. */
  async signalExec(sprite: string, id: string, signal: string, timeoutSeconds: number): Promise<void> {
    const path = `/${sprite}/exec/${id}/kill?signal=${signal}&timeout=${timeoutSeconds}s`
    await this.#send({ method: 'POST', path, accepts: [404, 410], isIdempotent: true }, discard)
  }

  async checkpoint(sprite: string, comment: string | undefined): Promise<void> {
    const body = JSON.stringify(comment === undefined ? {} : { comment })
    await this.#stream({ method: 'POST', path: `/${sprite}/checkpoint`, body, timeoutMs: SLOW_MS })
  }

  async checkpoints(sprite: string): Promise<readonly SpriteCheckpoint[]> {
    const listed = await this.#json({ method: 'GET', path: `/${sprite}/checkpoints`, isIdempotent: true })
    if (!Array.isArray(listed)) throw new SpritesError('invalid_response')
    return listed.flatMap((each: unknown) => {
      const id = textOf(each, 'id')
      const createdMs = Date.parse(textOf(each, 'create_time') ?? '')
      const isValid = id !== undefined && /^[A-Za-z0-9._-]{1,64}$/.test(id) && !Number.isNaN(createdMs)
      return isValid ? [{ id, createdMs, comment: textOf(each, 'comment') }] : []
    })
  }

  async restore(sprite: string, checkpoint: string): Promise<void> {
    const path = `/${sprite}/checkpoints/${checkpoint}/restore`
    await this.#stream({ method: 'POST', path, timeoutMs: SLOW_MS })
  }

  /** Opens a connection, repeated while that may help. */
  open<T>(open: () => Promise<T>, isWorthRetrying: (error: unknown) => boolean): Promise<T> {
    return this.#retry(() => this.#guard(open), isWorthRetrying)
  }

  #retry<T>(run: () => Promise<T>, isWorthRetrying: (error: unknown) => boolean): Promise<T> {
    const { breaker, sleep, random } = this.#deps
    return retryIdempotent(run, {
      isWorthRetrying: (error) => breaker.state.kind === 'closed' && isWorthRetrying(error),
      sleep,
      random,
    })
  }

  /** Any answer of the API counts as success for the circuit breaker. */
  async #guard<T>(run: () => Promise<T>): Promise<T> {
    const { breaker, nowMs } = this.#deps
    if (!breaker.admit(nowMs())) throw new SpritesError('unreachable')
    try {
      const value = await run()
      breaker.succeeded()
      return value
    } catch (error) {
      if (isUnreachable(error)) breaker.failed(nowMs())
      else breaker.succeeded()
      throw error
    }
  }

  /** Undefined for a status of `accepts`. */
  #json(call: Call): Promise<unknown> {
    return this.#send(call, async (response, signal) => {
      if (response.ok) return { value: await readBoundedJson(response, MAX_JSON_BYTES, signal) }
      await discard(response)
      return { value: undefined }
    }).then(({ value }) => value)
  }

  /** Waits for the end of a stream of events; throws if one of them is an error. */
  async #stream(call: Call): Promise<void> {
    const events = await this.#send(call, (response, signal) => readBounded(response, MAX_LOG_BYTES, signal))
    const last = events.trimEnd().split('\n').at(-1) ?? ''
    if (textOf(parseJson(last), 'type') !== 'complete')
      throw new SandwireError('sandbox_failed', 'Sprites could not complete the operation')
  }

  #send<T>(call: Call, read: Read<T>): Promise<T> {
    return this.#retry(
      () => this.#sendOnce(call, read),
      (error) => call.isIdempotent === true && isUnreachable(error),
    )
  }

  #sendOnce<T>(call: Call, read: Read<T>): Promise<T> {
    return this.#guard(async () => {
      const deadline = { ms: call.timeoutMs ?? CALL_MS, late: () => new SpritesError('unreachable') }
      const value = await withDeadline(deadline, async (signal) =>
        read(await this.#fetch(call, signal), signal),
      )
      if (value === undefined) throw new SpritesError('invalid_response')
      return value
    })
  }

  async #fetch({ method, path, body, accepts = [] }: Call, signal: AbortSignal): Promise<Response> {
    const { baseUrl, token } = this.#settings
    const init: RequestInit = {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      redirect: 'manual',
      signal,
      ...(body !== undefined && { body }),
    }
    let response: Response
    try {
      response = await this.#deps.fetch(`${baseUrl}/v1/sprites${path}`, init)
    } catch (cause) {
      throw new SpritesError('unreachable', cause)
    }
    if (response.ok || accepts.includes(response.status)) return response
    await discard(response)
    throw problemOf(response.status)
  }
}

/** The API did not respond, or refused because it is busy. */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof SpritesError) return error.problem === 'unreachable'
  return error instanceof SandwireError && error.code === 'sandbox_unreachable'
}

/** Reads a response; undefined when it is malformed. */
type Read<T> = (response: Response, signal: AbortSignal) => Promise<T | undefined> | T

async function discard(response: Response): Promise<true> {
  await response.body?.cancel()
  return true
}

/** The error for a status that is not an answer. */
export function problemOf(status: number): SandwireError {
  if (status === 401 || status === 403) return new SpritesError('bad_token')
  if (status === 404) return new SpritesError('sprite_not_found')
  if (status === 429 || status >= 500) return new SpritesError('unreachable')
  return new SandwireError('sandbox_failed', `Sprites refused the operation with status ${status}`)
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    // Not an event.
    return undefined
  }
}

/** What a service wrote, from one event of its log. */
function textOfLine(line: string): string | undefined {
  const event = parseJson(line)
  const type = textOf(event, 'type')
  return type === 'stdout' || type === 'stderr' ? textOf(event, 'data')?.trimEnd() : undefined
}
