import { type ErrorCode, ERRORS, isErrorCode } from '@sandwire/protocol'

/** Why a server refused a connection. */
export interface RefusalReason {
  readonly code: ErrorCode
  readonly message: string
}

/** The reason in a close frame; undefined unless code and reason match the error table. */
export function parseCloseReason(close: number, reason: string): RefusalReason | undefined {
  if (isErrorCode(reason) && ERRORS[reason].close === close)
    return { code: reason, message: `The server closed the connection: ${reason}` }
  return undefined
}

function codeForStatus(status: number): ErrorCode | undefined {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not_found'
  if (status === 429) return 'rate_limited'
  if (status >= 500) return 'internal'
  return undefined
}

/** Why a request failed, as far as the platform reports it. */
function describeNetworkError(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
  if (code === 'ECONNREFUSED' || code === 'ConnectionRefused') return 'connection refused'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'no such host'
  if (/CERT|SSL|TLS|SELF_SIGNED/.test(code)) return `the certificate is not trusted (${printable(code)})`
  return 'no answer'
}

/** Describes a failed request. A page cannot read errors of another origin, so the message lists all possible causes. */
function describeSilence(error: unknown, server: URL, page: string | undefined): string {
  if (page === undefined || page === server.origin)
    return `The server cannot be reached: ${describeNetworkError(error)}`
  return `Cannot connect to ${server.origin}: the server does not respond, does not allow pages of ${page}, or did not accept the ticket`
}

/** Reduces text from a server to one line of printable characters. */
function printable(text: string): string {
  return text.replace(/\p{C}+/gu, ' ').slice(0, 500)
}

/**
 * Asks over HTTP why an upgrade was refused, because a WebSocket does not report it. Undefined when the server would accept
 * an upgrade. `link_lost` when the server cannot be reached or its response is not understood.
 */
export async function explainRefusal(
  request: { url: URL; headers: Readonly<Record<string, string>> },
  fetchLike: (url: string, init: RequestInit) => Promise<Response>,
  /** Origin of the page; undefined outside browsers. */
  page?: string,
): Promise<RefusalReason | undefined> {
  const url = new URL(request.url)
  url.protocol = url.protocol === 'wss:' ? 'https:' : 'http:'
  try {
    const response = await fetchLike(url.href, {
      headers: request.headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(5_000),
    })
    const body: unknown = await response.json().catch(() => undefined)
    const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
    const message =
      typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined
    if (code === 'upgrade_required') return undefined
    const known = typeof code === 'string' && isErrorCode(code) ? code : codeForStatus(response.status)
    if (known === undefined) {
      return { code: 'link_lost', message: `The server answered ${response.status} instead of an upgrade` }
    }
    return {
      code: known,
      message: typeof message === 'string' ? printable(message) : `The server answered ${response.status}`,
    }
  } catch (error) {
    return { code: 'link_lost', message: describeSilence(error, url, page) }
  }
}
