import { type ErrorCode, isErrorCode, SandwireError } from '@sandwire/protocol'
import { readBounded } from './read-bounded.ts'

/** Long enough for a sandbox to start, short enough for somebody who waits. */
const TIMEOUT_MS = 60_000
/** More than the longest answer of the API: a log of 1 MiB, or many thousand rows. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

export interface ApiOptions {
  /** Every request goes there, and so does the token; redirects are not followed. */
  readonly origin: string
  /** The token for each request; undefined when there is none. */
  readonly bearer: () => Promise<string | undefined>
  /** Makes another token of one that was refused; whether there is one now. */
  readonly renew?: ((refused: string) => Promise<boolean>) | undefined
}

export interface Api {
  /** The answer as JSON; undefined when it has no body. Throws `SandwireError`. */
  readonly request: (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) => Promise<unknown>
  readonly readText: (path: string) => Promise<string>
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not_found'
  if (status === 429) return 'rate_limited'
  return status >= 500 ? 'internal' : 'bad_request'
}

function own(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined
}

/** The error in an answer, or one made up from its status. */
function errorOf(status: number, body: unknown): SandwireError {
  const error = own(body, 'error')
  const code = own(error, 'code')
  const message = own(error, 'message')
  const known = typeof code === 'string' && isErrorCode(code) ? code : codeOfStatus(status)
  const said = typeof message === 'string' ? message : `The server answered ${status}`
  return new SandwireError(known, said)
}

/** Why a request could not be made, in words. */
export function faultOf(error: unknown): string {
  const code = own(error, 'code')
  const name = error instanceof Error ? error.name : ''
  if (code === 'ECONNREFUSED' || code === 'ConnectionRefused') return 'connection refused'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'no such host'
  if (name === 'TimeoutError') return 'it does not answer in time'
  if (/CERT|SSL|TLS|SELF_SIGNED/.test(String(code))) return 'its certificate is not trusted'
  return 'no answer'
}

/** Speaks to the control API of one server. */
export function createApi({ origin, bearer, renew }: ApiOptions): Api {
  async function sendAs(
    token: string | undefined,
    { method, path, body }: Asked,
  ): Promise<{ status: number; text: string }> {
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    try {
      const response = await fetch(origin + path, {
        method,
        headers,
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: response.status, text: await readBounded(response, MAX_ANSWER_BYTES) }
    } catch (error) {
      if (error instanceof SandwireError) throw error
      throw new SandwireError('link_lost', `The server cannot be reached: ${faultOf(error)}`, {
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

  return {
    request: async (method, path, body) => {
      const answer = await send({ method, path, body })
      const value = parseJson(answer.text)
      if (answer.status < 200 || answer.status > 299) throw errorOf(answer.status, value)
      return value
    },
    readText: async (path) => {
      const answer = await send({ method: 'GET', path })
      if (answer.status !== 200) throw errorOf(answer.status, parseJson(answer.text))
      return answer.text
    },
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Whoever reads the value sees that it is not what was expected.
    return undefined
  }
}
