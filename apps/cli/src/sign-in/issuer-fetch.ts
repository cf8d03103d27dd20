import { SandwireError } from '@sandwire/protocol'
import { faultOf } from '../errors/answer-error.ts'
import { readBounded } from '../server/read-bounded.ts'
import { isSecureUrl } from './secure-url.ts'

/** An issuer answers a request well within this time. */
const TIMEOUT_MS = 15_000
/** Larger than any metadata document or token answer. */
const MAX_ANSWER_BYTES = 512 * 1024

interface FetchInit {
  readonly method?: string
  readonly headers?: Record<string, string> | Headers
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/**
 * How an issuer is asked: only where secrets may go, without following redirects, for a bounded time and answer. Throws
 * `issuer_unavailable` when it cannot be reached.
 */
export async function issuerFetch(url: string, init: FetchInit = {}): Promise<Response> {
  if (!isSecureUrl(url))
    throw new SandwireError('no_issuer', 'Cannot ask the issuer: its address is not https')
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  const signal = init.signal === undefined ? timeout : AbortSignal.any([timeout, init.signal])
  try {
    const response = await fetch(url, {
      method: init.method ?? 'GET',
      headers: new Headers(init.headers),
      redirect: 'manual',
      signal,
      ...(init.body instanceof URLSearchParams ? { body: init.body.toString() } : {}),
    })
    const text = await readBounded(response, MAX_ANSWER_BYTES)
    const type = response.headers.get('content-type')
    return new Response(text === '' ? null : text, {
      status: response.status,
      headers: type === null ? {} : { 'content-type': type },
    })
  } catch (error) {
    init.signal?.throwIfAborted()
    if (error instanceof SandwireError) throw error
    const what = `The issuer ${new URL(url).host} cannot be reached: ${faultOf(error)}`
    throw new SandwireError('issuer_unavailable', what, { cause: error })
  }
}
