import { SandwireError } from '@sandwire/protocol'
import { errorFromResponse, describeNetworkError, parseJson, readBounded } from './response.ts'
import { withPlainHttpCheck } from './probe-server.ts'

/** A request whose body or response may be large. */
export interface ApiRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** In memory as a whole, so that it can be sent again. */
  readonly body?: Uint8Array<ArrayBuffer>
  readonly json?: unknown
  readonly signal: AbortSignal
}

/** A successful response. */
export interface ApiResponse {
  readonly status: number
  readonly headers: Headers
  /** Streams the body. Throws `link_lost` when it breaks off or stalls. Stopping early cancels the request. */
  readonly bytes: () => AsyncGenerator<Uint8Array>
  /** Reads a small body. */
  readonly json: () => Promise<unknown>
}

/** Longest time without progress; a sandbox starts within it. */
const IDLE_TIMEOUT_MS = 60_000
/** Largest JSON response: a page of a folder with long names. */
const MAX_JSON_BYTES = 16 * 1024 * 1024

/** Aborts a request that makes no progress. */
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

  pause(): void {
    clearTimeout(this.#timer)
  }

  end(): void {
    this.pause()
    this.#controller.abort(new DOMException('The request made no progress', 'TimeoutError'))
  }
}

function toConnectionError(error: unknown): SandwireError {
  if (error instanceof SandwireError) return error
  return new SandwireError('link_lost', `Cannot reach the server: ${describeNetworkError(error)}`, {
    cause: error,
  })
}

async function* readBytes(response: Response, idleTimeout: IdleTimeout): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body ?? []) {
      // The consumer may take its time.
      idleTimeout.pause()
      yield chunk
      idleTimeout.renew()
    }
  } catch (error) {
    throw toConnectionError(error)
  } finally {
    idleTimeout.end()
  }
}

async function readJson(bytes: AsyncGenerator<Uint8Array>): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.byteLength
    if (size > MAX_JSON_BYTES) throw new SandwireError('frame_too_large', 'The response is too long')
    chunks.push(chunk)
  }
  return parseJson(Buffer.concat(chunks).toString('utf8'))
}

/** Sends a request with this token. Throws `SandwireError` for an error response. */
async function sendRequest(
  { origin, address }: { readonly origin: string; readonly address: string },
  token: string | undefined,
  { method, path, headers, body, json, signal }: ApiRequest,
): Promise<ApiResponse> {
  const idleTimeout = new IdleTimeout()
  try {
    const response = await withPlainHttpCheck(address, (plainHttp) =>
      fetch(origin + path, {
        method,
        redirect: 'manual',
        signal: AbortSignal.any([signal, idleTimeout.signal, plainHttp]),
        headers: {
          ...headers,
          // Offsets count bytes of the file, so proxies must not compress it.
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
    throw toConnectionError(error)
  }
}

/** A sandbox starts within this time. */
const TIMEOUT_MS = 60_000
/** Larger than any response of the API: a log of 1 MiB, or many thousand rows. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024

export interface ApiOptions {
  /** The only origin that requests and the token go to; redirects are not followed. */
  readonly origin: string
  /** The address as the user typed it. */
  readonly address?: string
  /** The token for each request; undefined when there is none. */
  readonly bearer: () => Promise<string | undefined>
  /** Replaces a token that the server refused; false when it cannot. */
  readonly renew?: ((refused: string) => Promise<boolean>) | undefined
}

export interface Api {
  /** Returns the JSON body; undefined when there is none. Throws `SandwireError`. */
  readonly request: (
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
  ) => Promise<unknown>
  readonly readText: (path: string) => Promise<string>
  /** Sends a request with a large body or response. Throws `SandwireError` for an error response. */
  readonly send: (request: ApiRequest) => Promise<ApiResponse>
}

interface JsonRequest {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/** A client for the control API of one server. */
export function createApi({ origin, address = origin, bearer, renew }: ApiOptions): Api {
  async function sendAs(
    token: string | undefined,
    { method, path, body }: JsonRequest,
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
      return { status: response.status, text: await readBounded(response, MAX_RESPONSE_BYTES) }
    } catch (error) {
      if (error instanceof SandwireError) throw error
      throw new SandwireError('link_lost', `Cannot reach the server: ${describeNetworkError(error)}`, {
        cause: error,
      })
    }
  }

  /** A refused request had no effect, so it is safe to send it again with a renewed token. */
  async function sendJson(request: JsonRequest): Promise<{ status: number; text: string }> {
    const token = await bearer()
    const response = await sendAs(token, request)
    if (response.status !== 401 || token === undefined || !(await renew?.(token))) return response
    return await sendAs(await bearer(), request)
  }

  async function send(request: ApiRequest): Promise<ApiResponse> {
    const token = await bearer()
    try {
      return await sendRequest({ origin, address }, token, request)
    } catch (error) {
      const isRefused = SandwireError.from(error).code === 'unauthorized'
      if (!isRefused || token === undefined || !(await renew?.(token))) throw error
      return await sendRequest({ origin, address }, await bearer(), request)
    }
  }

  return {
    send,
    request: async (method, path, body) => {
      const response = await sendJson({ method, path, body })
      const value = parseJson(response.text)
      if (response.status < 200 || response.status > 299) throw errorFromResponse(response.status, value)
      return value
    },
    readText: async (path) => {
      const response = await sendJson({ method: 'GET', path })
      if (response.status !== 200) throw errorFromResponse(response.status, parseJson(response.text))
      return response.text
    },
  }
}
