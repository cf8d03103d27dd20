import { type ErrorCode, ERRORS, isErrorCode } from '@sandwire/protocol'

/** Why a server turned a connection away. */
export interface RefusalReason {
  readonly code: ErrorCode
  readonly message: string
}

/** The code that a close code of the table stands for. */
export function reasonOfClose(close: number, reason: string): RefusalReason | undefined {
  if (isErrorCode(reason) && ERRORS[reason].close === close) return { code: reason, message: `The server closed the connection: ${reason}` }
  return undefined
}

function codeOfStatus(status: number): ErrorCode | undefined {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not_found'
  if (status === 429) return 'rate_limited'
  if (status >= 500) return 'internal'
  return undefined
}

/** Text from a server that is about to be shown: one line of printable characters. */
function printable(text: string): string {
  return text.replace(/\p{C}+/gu, ' ').slice(0, 500)
}

/**
 * Asks over HTTP why an upgrade was refused, because a WebSocket cannot tell. Undefined when the server has no
 * objection, or cannot be reached either.
 */
export async function explainRefusal(
  request: { url: URL; headers: Readonly<Record<string, string>> },
  fetchLike: (url: string, init: RequestInit) => Promise<Response>,
): Promise<RefusalReason | undefined> {
  const url = new URL(request.url)
  url.protocol = url.protocol === 'wss:' ? 'https:' : 'http:'
  try {
    const response = await fetchLike(url.href, { headers: request.headers, redirect: 'manual', signal: AbortSignal.timeout(5_000) })
    const body: unknown = await response.json().catch(() => undefined)
    const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
    const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined
    if (code === 'upgrade_required') return undefined
    const known = typeof code === 'string' && isErrorCode(code) ? code : codeOfStatus(response.status)
    if (known === undefined) return undefined
    return { code: known, message: typeof message === 'string' ? printable(message) : `The server answered ${response.status}` }
  } catch {
    // Unreachable over HTTP as well: the link is at fault, not the request.
    return undefined
  }
}
