import { type ErrorCode, ERRORS, isErrorCode } from '@sandwire/protocol'

/** Why a server turned a connection away. */
export interface RefusalReason {
  readonly code: ErrorCode
  readonly message: string
}

/** The code that a close code of the table stands for. */
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

/** Why a request could not be made, in words where the platform says it. */
function describeNetworkError(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
  if (code === 'ECONNREFUSED' || code === 'ConnectionRefused') return 'connection refused'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'no such host'
  if (/CERT|SSL|TLS|SELF_SIGNED/.test(code)) return `the certificate is not trusted (${printable(code)})`
  return 'no answer'
}

/**
 * Why nothing was heard. Of another origin a page hears nothing but answers that are meant for it, so a refusal looks to it like
 * silence, and all that it may be is said.
 */
function describeSilence(error: unknown, server: URL, page: string | undefined): string {
  if (page === undefined || page === server.origin)
    return `The server cannot be reached: ${describeNetworkError(error)}`
  return `Cannot connect to ${server.origin}: it does not answer, does not allow pages of ${page}, or did not accept the ticket`
}

/** Text from a server that is about to be shown: one line of printable characters. */
function printable(text: string): string {
  return text.replace(/\p{C}+/gu, ' ').slice(0, 500)
}

/**
 * Asks over HTTP why an upgrade was refused, because a WebSocket cannot tell. Undefined when the server has no
 * objection. A server that cannot be reached, or that answers something else, is a lost link with a reason.
 */
export async function explainRefusal(
  request: { url: URL; headers: Readonly<Record<string, string>> },
  fetchLike: (url: string, init: RequestInit) => Promise<Response>,
  /** Origin of the page that asks; undefined outside browsers. */
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
