import { SandwireError } from '@sandwire/protocol'
import { errorFromResponse, describeNetworkError, parseJson, readBounded } from './response.ts'
import { withPlainHttpCheck } from './plain-server.ts'

/** A request whose answer, or body, may be long. */
export interface Exchange {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Held whole, so that it can be sent again. */
  readonly body?: Uint8Array<ArrayBuffer>
  readonly json?: unknown
  readonly signal: AbortSignal
}

/** An answer that said yes. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** Its bytes as they come. Throws `link_lost` when they break off or none come for long. Leaving early ends the request. */
  readonly bytes: () => AsyncGenerator<Uint8Array>
  /** A short answer. */
  readonly json: () => Promise<unknown>
}

/** How long nothing may happen: longer than a sandbox takes to wake, shorter than somebody waits for nothing. */
const IDLE_TIMEOUT_MS = 60_000
/** Longest answer that is JSON: a page of a folder with long names. */
const MAX_JSON_BYTES = 16 * 1024 * 1024

/** Ends a request in which nothing happens. */
class IdleTimeout {
  readonly #controller = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    this.renew()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  renew(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.end(), IDLE_TIMEOUT_MS)
  }

  rest(): void {
    clearTimeout(this.#timer)
  }

  end(): void {
    this.rest()
    this.#controller.abort(new DOMException('Nothing happens', 'TimeoutError'))
  }
}

function lost(error: unknown): SandwireError {
  if (error instanceof SandwireError) return error
  return new SandwireError('link_lost', `The server cannot be reached: ${describeNetworkError(error)}`, {
    cause: error,
  })
}

async function* readBytes(response: Response, idleTimeout: IdleTimeout): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body ?? []) {
      // Whoever has the bytes may take their time.
      idleTimeout.rest()
      yield chunk
      idleTimeout.renew()
    }
  } catch (error) {
    throw lost(error)
  } finally {
    idleTimeout.end()
  }
}

async function readJson(bytes: AsyncGenerator<Uint8Array>): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.byteLength
    if (size > MAX_JSON_BYTES) throw new SandwireError('frame_too_large', 'The answer is too long')
    chunks.push(chunk)
  }
  return parseJson(Buffer.concat(chunks).toString('utf8'))
}

/** Sends a request with this token. Throws `SandwireError` unless the answer says yes. */
export async function sendRequest(
  { origin, address }: { readonly origin: string; readonly address: string },
  token: string | undefined,
  { method, path, headers, body, json, signal }: Exchange,
): Promise<Answer> {
  const idleTimeout = new IdleTimeout()
  try {
    const response = await withPlainHttpCheck(address, (plainHttp) =>
      fetch(origin + path, {
        method,
        redirect: 'manual',
        signal: AbortSignal.any([signal, idleTimeout.signal, plainHttp]),
        headers: {
          ...headers,
          // Files are bytes; what an intermediary compresses, it would also count otherwise.
          'accept-encoding': 'identity',
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...(body === undefined ? {} : { 'content-type': 'application/octet-stream' }),
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        ...(body === undefined ? {} : { body }),
      }),
    )
    const bytes = (): AsyncGenerator<Uint8Array> => readBytes(response, idleTimeout)
    if (response.status >= 200 && response.status < 300)
      return { status: response.status, headers: response.headers, bytes, json: () => readJson(bytes()) }
    throw errorFromResponse(response.status, await readJson(bytes()), response.headers.get('retry-after'))
  } catch (error) {
    idleTimeout.end()
    throw lost(error)
  }
}

/** Long enough for a sandbox to start, short enough for somebody who waits. */
const TIMEOUT_MS = 60_000
/** More than the longest answer of the API: a log of 1 MiB, or many thousand rows. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

export interface ApiOptions {
  /** Every request goes there, and so does the token; redirects are not followed. */
  readonly origin: string
  /** The same as it was typed. */
  readonly address?: string
  /** The token for each request; undefined when there is none. */
  readonly bearer: () => Promise<string | undefined>
  /** Makes another token of one that was refused; whether there is one now. */
  readonly renew?: ((refused: string) => Promise<boolean>) | undefined
}

export interface Api {
  /** The answer as JSON; undefined when it has no body. Throws `SandwireError`. */
  readonly request: (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) => Promise<unknown>
  readonly readText: (path: string) => Promise<string>
  /** A request with bytes in it, or in its answer. Throws `SandwireError` unless the answer says yes. */
  readonly exchange: (exchange: Exchange) => Promise<Answer>
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/** Speaks to the control API of one server. */
export function createApi({ origin, address = origin, bearer, renew }: ApiOptions): Api {
  async function sendAs(
    token: string | undefined,
    { method, path, body }: Asked,
  ): Promise<{ status: number; text: string }> {
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    try {
      const response = await withPlainHttpCheck(address, (plainHttp) =>
        fetch(origin + path, {
          method,
          headers,
          redirect: 'manual',
          signal: AbortSignal.any([plainHttp, AbortSignal.timeout(TIMEOUT_MS)]),
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      )
      return { status: response.status, text: await readBounded(response, MAX_ANSWER_BYTES) }
    } catch (error) {
      if (error instanceof SandwireError) throw error
      throw new SandwireError('link_lost', `The server cannot be reached: ${describeNetworkError(error)}`, {
        cause: error,
      })
    }
  }

  /** Whoever is refused has had nothing done, so it is safe to ask once more with a token that was renewed. */
  async function send(asked: Asked): Promise<{ status: number; text: string }> {
    const token = await bearer()
    const answer = await sendAs(token, asked)
    if (answer.status !== 401 || token === undefined || !(await renew?.(token))) return answer
    return await sendAs(await bearer(), asked)
  }

  async function exchange(asked: Exchange): Promise<Answer> {
    const token = await bearer()
    try {
      return await sendRequest({ origin, address }, token, asked)
    } catch (error) {
      const isRefused = SandwireError.from(error).code === 'unauthorized'
      if (!isRefused || token === undefined || !(await renew?.(token))) throw error
      return await sendRequest({ origin, address }, await bearer(), asked)
    }
  }

  return {
    exchange,
    request: async (method, path, body) => {
      const answer = await send({ method, path, body })
      const value = parseJson(answer.text)
      if (answer.status < 200 || answer.status > 299) throw errorFromResponse(answer.status, value)
      return value
    },
    readText: async (path) => {
      const answer = await send({ method: 'GET', path })
      if (answer.status !== 200) throw errorFromResponse(answer.status, parseJson(answer.text))
      return answer.text
    },
  }
}
