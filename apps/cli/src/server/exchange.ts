import { SandwireError } from '@sandwire/protocol'
import { errorOf, faultOf, parseJson } from '../errors/answer-error.ts'
import { askWarily } from './plain-server.ts'

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
const PATIENCE_MS = 60_000
/** Longest answer that is JSON: a page of a folder with long names. */
const MAX_JSON_BYTES = 16 * 1024 * 1024

/** Ends a request in which nothing happens. */
class Patience {
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
    this.#timer = setTimeout(() => this.end(), PATIENCE_MS)
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
  return new SandwireError('link_lost', `The server cannot be reached: ${faultOf(error)}`, { cause: error })
}

async function* readBytes(response: Response, patience: Patience): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body ?? []) {
      // Whoever has the bytes may take their time.
      patience.rest()
      yield chunk
      patience.renew()
    }
  } catch (error) {
    throw lost(error)
  } finally {
    patience.end()
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
export async function sendExchange(
  { origin, address }: { readonly origin: string; readonly address: string },
  token: string | undefined,
  { method, path, headers, body, json, signal }: Exchange,
): Promise<Answer> {
  const patience = new Patience()
  try {
    const response = await askWarily(address, (suspicion) =>
      fetch(origin + path, {
        method,
        redirect: 'manual',
        signal: AbortSignal.any([signal, patience.signal, suspicion]),
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
    const bytes = (): AsyncGenerator<Uint8Array> => readBytes(response, patience)
    if (response.status >= 200 && response.status < 300)
      return { status: response.status, headers: response.headers, bytes, json: () => readJson(bytes()) }
    throw errorOf(response.status, await readJson(bytes()), response.headers.get('retry-after'))
  } catch (error) {
    patience.end()
    throw lost(error)
  }
}
