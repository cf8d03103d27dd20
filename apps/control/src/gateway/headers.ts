/** Headers of a request that mean something in a sandbox, and what they may be. All others stay here. */
const REQUEST_HEADERS: Readonly<Record<string, RegExp>> = {
  range: /^bytes=[0-9, -]{1,200}$/,
  'if-match': /^[\x20-\x7e]{1,1000}$/,
  'if-none-match': /^[\x20-\x7e]{1,1000}$/,
  'if-range': /^[\x20-\x7e]{1,200}$/,
}

/** Headers of an answer that mean something to a client. What else a sandbox says, above all a cookie, is not ours to say. */
const ANSWER_HEADERS: Readonly<Record<string, RegExp>> = {
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

/** What goes along with a request. One that is malformed would be another condition if it were left out. */
export function requestHeaders(headers: Headers): Record<string, string> | { readonly malformed: string } {
  const picked = pick(headers, REQUEST_HEADERS)
  const malformed = Object.keys(REQUEST_HEADERS).find((name) => headers.has(name) && !(name in picked))
  return malformed === undefined ? picked : { malformed }
}

/** What comes back with an answer. */
export function answerHeaders(headers: Headers): Record<string, string> {
  return pick(headers, ANSWER_HEADERS)
}

/** The type of a body without its parameters. */
export function typeOf(headers: Headers): string {
  return (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/** Header in which sandboxd says how large a whole file is: what it streams has no length of its own. */
const SIZE_HEADER = 'sandwire-size'

/** How long an answer is: as it says, or as long as the part of a file that it is; undefined when nothing tells. */
export function answerLength(status: number, headers: Headers): number | undefined {
  const said = lengthOf(headers)
  if (said !== undefined) return said
  if (status === 200) return toLength(headers.get(SIZE_HEADER))
  const [, from, to] = /^bytes ([0-9]{1,15})-([0-9]{1,15})\//.exec(headers.get('content-range') ?? '') ?? []
  return from === undefined || to === undefined ? undefined : Number(to) - Number(from) + 1
}

function toLength(text: string | null): number | undefined {
  if (text === null) return undefined
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN
}

/** Length that a message says its body has; undefined when it says none, NaN when that is no number. */
export function lengthOf(headers: Headers): number | undefined {
  return toLength(headers.get('content-length'))
}
