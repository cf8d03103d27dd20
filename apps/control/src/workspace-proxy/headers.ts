/** Request headers that are sent to sandboxd, and their syntax. */
const REQUEST_HEADERS: Readonly<Record<string, RegExp>> = {
  range: /^bytes=[0-9, -]{1,200}$/,
  'if-match': /^[\x20-\x7e]{1,1000}$/,
  'if-none-match': /^[\x20-\x7e]{1,1000}$/,
  'if-range': /^[\x20-\x7e]{1,200}$/,
}

/** Response headers that are sent to the client. All others, above all cookies, are dropped: sandboxes run untrusted code. */
const RESPONSE_HEADERS: Readonly<Record<string, RegExp>> = {
  etag: /^"[\x21\x23-\x7e]{1,200}"$/,
  'content-range': /^bytes ([0-9]{1,16}-[0-9]{1,16}|\*)\/[0-9]{1,16}$/,
  'accept-ranges': /^(bytes|none)$/,
  'last-modified': /^[A-Za-z]{3}, [0-9]{2} [A-Za-z]{3} [0-9]{4} [0-9:]{8} GMT$/,
}

function pick(headers: Headers, allowed: Readonly<Record<string, RegExp>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(allowed).flatMap(([name, pattern]) => {
      const value = headers.get(name)
      return value !== null && pattern.test(value) ? [[name, value]] : []
    }),
  )
}

/** The headers for sandboxd. A malformed one is reported: leaving it out would change the condition. */
export function requestHeaders(headers: Headers): Record<string, string> | { readonly malformed: string } {
  const picked = pick(headers, REQUEST_HEADERS)
  const malformed = Object.keys(REQUEST_HEADERS).find((name) => headers.has(name) && !(name in picked))
  return malformed === undefined ? picked : { malformed }
}

export function responseHeaders(headers: Headers): Record<string, string> {
  return pick(headers, RESPONSE_HEADERS)
}

/** The content type without its parameters. */
export function contentType(headers: Headers): string {
  return (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/** Header with the size of a whole file: sandboxd streams it without a content-length. */
const SIZE_HEADER = 'sandwire-size'

/** Length of a response body, from its own length or its range; undefined when neither is given, NaN when malformed. */
export function responseLength(status: number, headers: Headers): number | undefined {
  const length = contentLength(headers)
  if (length !== undefined) return length
  if (status === 200) return parseLength(headers.get(SIZE_HEADER))
  const [, from, to] = /^bytes ([0-9]{1,15})-([0-9]{1,15})\//.exec(headers.get('content-range') ?? '') ?? []
  return from === undefined || to === undefined ? undefined : Number(to) - Number(from) + 1
}

function parseLength(text: string | null): number | undefined {
  if (text === null) return undefined
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN
}

/** The content-length; undefined when absent, NaN when malformed. */
export function contentLength(headers: Headers): number | undefined {
  return parseLength(headers.get('content-length'))
}
