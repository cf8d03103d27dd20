import { SandwireError } from '@sandwire/protocol'
import { errorOf, faultOf, parseJson } from '../errors/answer-error.ts'
import { type Answer, type Exchange, sendExchange } from './exchange.ts'
import { askWarily } from './plain-server.ts'
import { readBounded } from './read-bounded.ts'

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
      const response = await askWarily(address, (suspicion) =>
        fetch(origin + path, {
          method,
          headers,
          redirect: 'manual',
          signal: AbortSignal.any([suspicion, AbortSignal.timeout(TIMEOUT_MS)]),
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      )
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

  async function exchange(asked: Exchange): Promise<Answer> {
    const token = await bearer()
    try {
      return await sendExchange({ origin, address }, token, asked)
    } catch (error) {
      const isRefused = SandwireError.from(error).code === 'unauthorized'
      if (!isRefused || token === undefined || !(await renew?.(token))) throw error
      return await sendExchange({ origin, address }, await bearer(), asked)
    }
  }

  return {
    exchange,
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
