import { isLoopbackUrl } from '@sandwire/operator-settings'
import { ERRORS, retryAfterSeconds, type SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'

/** Headers of every response that is not a page: not stored, not sniffed, and inert if a browser renders it. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

/** Carries the error code where the body does not. */
export const CODE_HEADER = 'x-sandwire-code'
/** In a response of a sandbox's object: it has recorded the error in the audit. */
export const AUDITED_HEADER = 'x-sandwire-audited'

type ExtraHeaders = Readonly<Record<string, string>>

export function auditedHeader({ isAudited }: { readonly isAudited?: true }): ExtraHeaders {
  return isAudited === true ? { [AUDITED_HEADER]: '1' } : {}
}

/** Answers an error with this body, and with the status and `Retry-After` of the error. */
export function respondJsonError(
  error: SandwireError,
  requestId: string,
  body: unknown,
  headers: ExtraHeaders,
): Response {
  const waitSeconds = retryAfterSeconds(error)
  return Response.json(body, {
    status: ERRORS[error.code].status,
    headers: {
      ...COMMON_HEADERS,
      'x-request-id': requestId,
      ...(waitSeconds === undefined ? {} : { 'retry-after': String(waitSeconds) }),
      ...headers,
    },
  })
}

/** The error format of the HTTP API. Never includes causes or stacks. */
export function respondError(error: SandwireError, requestId: string, headers: ExtraHeaders = {}): Response {
  const { code, details, message } = error
  return respondJsonError(
    error,
    requestId,
    { error: { code, message, ...details, request_id: requestId } },
    headers,
  )
}

/** Allows nothing but our own files, and no frame around the page. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

export const HTML = 'text/html; charset=utf-8'

/** Headers of a page or one of its parts. */
export function pageHeaders(type = HTML, policy = CONTENT_SECURITY_POLICY): ExtraHeaders {
  return {
    'content-type': type,
    'content-security-policy': policy,
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  }
}

export function respondPage(
  text: string,
  { type, status = 200 }: { readonly type?: string; readonly status?: number } = {},
): Response {
  return new Response(text, { status, headers: pageHeaders(type) })
}

/** A year. Covers the host name itself, not names below it. */
const STRICT_TRANSPORT_SECURITY = 'max-age=31536000'

/** Hosts that browsers may be told to use HTTPS for. Not loopback names, whose other ports belong to other programs. */
function strictHostsOf(publicOrigins: readonly string[]): ReadonlySet<string> {
  const isStrict = (origin: string): boolean => origin.startsWith('https://') && !isLoopbackUrl(origin)
  return new Set(publicOrigins.filter(isStrict).map((origin) => new URL(origin).host))
}

/** Adds the common headers to every response, and `Strict-Transport-Security` if this server terminates TLS itself. */
export function addResponseHeaders({
  publicOrigins,
  hasTls,
}: {
  readonly publicOrigins: readonly string[]
  readonly hasTls: boolean
}): MiddlewareHandler {
  const strictHosts = hasTls ? strictHostsOf(publicOrigins) : new Set<string>()
  return async (context, next) => {
    await next()
    const { status, headers } = context.res
    if (status === 101) return
    for (const [name, value] of Object.entries(COMMON_HEADERS))
      if (!headers.has(name)) headers.set(name, value)
    if (strictHosts.has(context.req.header('host')?.toLowerCase() ?? ''))
      headers.set('strict-transport-security', STRICT_TRANSPORT_SECURITY)
  }
}
