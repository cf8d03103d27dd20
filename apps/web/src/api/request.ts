/** An error response, or an unreachable server. */
export class ApiError extends Error {
  /** The server's error code, or `unreachable`. */
  readonly code: string
  readonly status: number
  /** What the code leaves open, for codes that have such a field. */
  readonly reason: string | undefined

  constructor(code: string, message: string, status: number, reason?: string) {
    super(message)
    this.name = 'ApiError'
    this.code = code
    this.status = status
    this.reason = reason
  }
}

/** Dispatched on `window` when the server answers 401. */
export const UNAUTHORIZED_EVENT = 'sandwire:unauthorized'

interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent unchanged. */
  readonly body?: Blob | ArrayBuffer | string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** Called with the number of bytes sent so far. */
  readonly onSent?: (bytes: number) => void
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

async function errorOf(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => undefined)
  const error = isRecord(body) ? body['error'] : undefined
  const code = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : 'unknown'
  const message =
    isRecord(error) && typeof error['message'] === 'string'
      ? error['message']
      : `Server error (${response.status})`
  const reason = isRecord(error) && typeof error['reason'] === 'string' ? error['reason'] : undefined
  return new ApiError(code, message, response.status, reason)
}

function send(path: string, options: RequestOptions): Promise<Response> {
  const { method = 'GET', json, body, headers = {}, signal, onSent } = options
  const stop = signal === undefined ? {} : { signal }
  if (onSent !== undefined && body instanceof Blob)
    return sendFile(path, { method, headers, body, onSent, ...stop })
  return fetch(path, {
    method,
    headers: { ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    ...(body === undefined ? {} : { body }),
    ...stop,
  })
}

/** Sends a request to this page's server; throws `ApiError` unless the response is 2xx. */
export async function request(path: string, options: RequestOptions = {}): Promise<Response> {
  let response: Response
  try {
    response = await send(path, options)
  } catch (caught) {
    if (options.signal?.aborted === true) throw caught
    throw new ApiError('unreachable', 'Server unreachable', 0)
  }
  if (response.status === 401) globalThis.dispatchEvent(new Event(UNAUTHORIZED_EVENT))
  if (!response.ok) throw await errorOf(response)
  return response
}

/** True when neither the server nor the proxy in front of it could be reached. */
export function isUnreachable(caught: unknown): boolean {
  return caught instanceof ApiError && [0, 502, 504].includes(caught.status)
}

/** The JSON body of a 2xx response; the caller knows its type from the OpenAPI document. */
export async function requestJson<T>(path: string, options: RequestOptions = {}): Promise<T> {
  return (await (await request(path, options)).json()) as T
}

interface Sending {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Blob
  readonly signal?: AbortSignal
  readonly onSent: (bytes: number) => void
}

/** Like `fetch`, with upload progress, which `fetch` lacks. */
function sendFile(path: string, { method, headers, body, signal, onSent }: Sending): Promise<Response> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest()
    sending.open(method, path)
    for (const [name, value] of Object.entries(headers)) sending.setRequestHeader(name, value)
    sending.upload.addEventListener('progress', ({ loaded }) => onSent(loaded))
    sending.addEventListener('load', () => {
      // `Response` rejects a body for statuses such as 204.
      const text = sending.responseText === '' ? null : sending.responseText
      resolve(new Response(text, { status: sending.status }))
    })
    sending.addEventListener('error', () => reject(new TypeError('The file could not be sent')))
    sending.addEventListener('abort', () => reject(new DOMException('Stopped', 'AbortError')))
    signal?.addEventListener('abort', () => sending.abort(), { once: true })
    if (signal?.aborted === true) reject(new DOMException('Stopped', 'AbortError'))
    else sending.send(body)
  })
}
