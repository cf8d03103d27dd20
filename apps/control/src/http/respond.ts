import { ERRORS, type SandwireError } from '@sandwire/protocol'

/** On every answer that is not a page: nothing is stored, sniffed or framed. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

/** What waiting is worth where nobody knows better: a moment when time alone helps, a while when somebody has to act. */
const SOON_SECONDS = 1
const LATER_SECONDS = 60

/** Seconds after which a request that was too much may be sent again; undefined when it was not that. */
export function retryAfterSeconds({ code, retryAfterMs }: SandwireError): number | undefined {
  const { status, retryable } = ERRORS[code]
  if (retryAfterMs !== undefined) return Math.max(1, Math.ceil(retryAfterMs / 1000))
  if (status !== 429) return undefined
  return retryable ? SOON_SECONDS : LATER_SECONDS
}

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
