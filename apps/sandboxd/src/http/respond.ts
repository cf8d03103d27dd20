import { type ErrorCode, ERRORS, retryAfterSeconds, SandwireError } from '@sandwire/protocol'

const COMMON = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

export function respondJson(
  body: unknown,
  init: { status?: number; headers?: Record<string, string> } = {},
): Response {
  return Response.json(body, { status: init.status ?? 200, headers: { ...COMMON, ...init.headers } })
}

/** An error response. Causes and stacks are not sent. */
export function respondError(error: SandwireError, requestId: string): Response {
  const { code, message } = error
  const waitSeconds = retryAfterSeconds(error)
  const retry: Record<string, string> =
    waitSeconds === undefined ? {} : { 'retry-after': String(waitSeconds) }
  return respondJson(
    { error: { code, message, request_id: requestId } },
    { status: ERRORS[code].status, headers: { 'x-request-id': requestId, ...retry } },
  )
}

export function refuse(code: ErrorCode, message: string): never {
  throw new SandwireError(code, message)
}
