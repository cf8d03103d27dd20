import { ERRORS, retryAfterSeconds, type SandwireError } from '@sandwire/protocol'

/** On every answer that is not a page: nothing is stored, sniffed or framed. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

/** Header that says an error's code where its body does not. */
export const CODE_HEADER = 'x-sandwire-code'

type MoreHeaders = Readonly<Record<string, string>>

function refuse(error: SandwireError, requestId: string, body: unknown, headers: MoreHeaders): Response {
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

/** The one shape of an error over HTTP. Causes and stacks stay here. */
export function respondError(error: SandwireError, requestId: string, headers: MoreHeaders = {}): Response {
  const { code, message } = error
  return refuse(error, requestId, { error: { code, message, request_id: requestId } }, headers)
}

/** The same as existing front ends read it. */
export function respondDetail(error: SandwireError, requestId: string, headers: MoreHeaders = {}): Response {
  return refuse(error, requestId, { detail: error.message }, { ...headers, [CODE_HEADER]: error.code })
}
