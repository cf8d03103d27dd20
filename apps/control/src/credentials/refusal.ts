/** Types of Anthropic's errors, by status. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

/**
 * A refusal of the gateway itself, in the format that Anthropic's and OpenAI's clients show. Clients retry only what may succeed
 * later.
 */
export function refuseModel(
  status: number,
  message: string,
  options: { readonly retryAfterSeconds?: number } = {},
): Response {
  const { retryAfterSeconds } = options
  const isRetryable = retryAfterSeconds !== undefined || status >= 500
  return Response.json(
    { type: 'error', error: { type: TYPES[status] ?? 'api_error', message: `Sandwire: ${message}` } },
    {
      status,
      headers: {
        'cache-control': 'no-store',
        'x-should-retry': String(isRetryable),
        ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
      },
    },
  )
}

/** A refusal for git and other programs, which show the text. */
export function refuseText(status: number, message: string): Response {
  return new Response(`Sandwire: ${message}\n`, {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  })
}
