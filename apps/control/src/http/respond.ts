import { ERRORS, type SandwireError } from '@sandwire/protocol'

/** On every answer that is not a page: nothing is stored, sniffed or framed. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

/** The one shape of an error over HTTP. Causes and stacks stay here. */
export function respondError(
  { code, message }: SandwireError,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const { status } = ERRORS[code]
  return Response.json(
    { error: { code, message, request_id: requestId } },
    {
      status,
      headers: {
        ...COMMON_HEADERS,
        'x-request-id': requestId,
        ...(status === 429 ? { 'retry-after': '1' } : {}),
        ...headers,
      },
    },
  )
}
