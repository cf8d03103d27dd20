import type { IssuerConfig } from '@sandwire/operator-settings'
import type { CustomFetchOptions } from 'oauth4webapi'
import { withDeadline } from '../http/deadline.ts'
import { readBounded } from '../http/read-bounded.ts'
import { type Fetch, issuerAway } from './issuer-fetch.ts'

/** Longest that an exchange may take; the person waits for it. */
const TIMEOUT_MS = 10_000
/** A few tokens are a few KiB each. */
const MAX_ANSWER_BYTES = 64 * 1024

type Post = (url: string, options: CustomFetchOptions<'POST', URLSearchParams>) => Promise<Response>

/** Sends a form to an issuer: once, without following it anywhere, and reads no more of the answer than it should. */
export function postToIssuer({ name }: IssuerConfig, fetchUrl: Fetch): Post {
  return async (url, { method, headers, body }) => {
    const post = async (signal: AbortSignal): Promise<Response> => {
      const response = await fetchUrl(url, { method, headers, body, redirect: 'manual', signal })
      const text = await readBounded(response, MAX_ANSWER_BYTES, signal)
      if (text === undefined) throw new Error('Too much, or broken off')
      const type = response.headers.get('content-type') ?? ''
      return new Response(text, { status: response.status, headers: { 'content-type': type } })
    }
    try {
      return await withDeadline({ ms: TIMEOUT_MS, late: () => new Error('Too slow') }, post)
    } catch {
      throw issuerAway(name, 'does not answer')
    }
  }
}
