import { ERRORS, retryAfterSeconds, type SandwireError } from '@sandwire/protocol'

/** On every answer that is not a page: nothing is stored, sniffed or framed. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

/** The one shape of an error over HTTP. Causes and stacks stay here. */
export function respondError(
  error: SandwireError,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const { code, message } = error
  const waitSeconds = retryAfterSeconds(error)
  const { status } = ERRORS[code]
  return Response.json(
    { error: { code, message, request_id: requestId } },
    {
      status,
      headers: {
        ...COMMON_HEADERS,
        'x-request-id': requestId,
        ...(waitSeconds === undefined ? {} : { 'retry-after': String(waitSeconds) }),
        ...headers,
      },
    },
  )
}
