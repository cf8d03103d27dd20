import { ERRORS, retryAfterSeconds, type SandwireError } from '@sandwire/protocol'

/** Headers of every response that is not a page: not stored, not sniffed. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

/** Carries the error code where the body does not. */
export const CODE_HEADER = 'x-sandwire-code'
/** In a response of a sandbox's object: it has recorded the error in the audit. */
export const AUDITED_HEADER = 'x-sandwire-audited'

type ExtraHeaders = Readonly<Record<string, string>>

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
