import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { UpstreamRequest } from './provider.ts'

/** Until sandboxd begins its response, unless the caller passes a signal. */
const RESPONSE_MS = 15_000

export function unreachable(cause?: unknown): SandwireError {
  return new SandwireError('sandbox_unreachable', 'The sandbox does not respond', { cause })
}

/** Sends a request to sandboxd, for every provider: redirects are not followed, and every failure is one error. */
export async function sendUpstream(
  send: (path: string, init: RequestInit) => Promise<Response>,
  { method, path, headers, body, signal }: UpstreamRequest,
): Promise<Response> {
  const init: RequestInit = { method, headers: { ...headers }, redirect: 'manual' }
  if (body !== undefined) init.body = body
  if (signal !== undefined) init.signal = signal
  try {
    const sent = send(path, init)
    return await (signal === undefined ? withTimeout(sent, RESPONSE_MS, unreachable) : sent)
  } catch (cause) {
    if (signal?.aborted === true) throw SandwireError.from(signal.reason)
    throw cause instanceof SandwireError ? cause : unreachable(cause)
  }
}
