import { type ErrorCode, isErrorCode, SandwireError, shape } from '@sandwire/protocol'

/** The text of an answer. Throws when it is longer than this, without having read all of it. */
export async function readBounded(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new SandwireError('frame_too_large', 'The answer is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not_found'
  if (status === 429) return 'rate_limited'
  return status >= 500 ? 'internal' : 'bad_request'
}

function own(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined
}

/** The error in an answer, or one made up from its status. */
export function errorFromResponse(status: number, body: unknown, retryAfter?: string | null): SandwireError {
  const error = own(body, 'error')
  const code = own(error, 'code')
  const message = own(error, 'message')
  const known = typeof code === 'string' && isErrorCode(code) ? code : codeOfStatus(status)
  const said = typeof message === 'string' ? message : `The server answered ${status}`
  const seconds = /^[0-9]{1,4}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined
  return new SandwireError(known, said, seconds === undefined ? {} : { retryAfterMs: seconds * 1000 })
}

/** Why a request could not be made, in words. */
export function describeNetworkError(error: unknown): string {
  const code = own(error, 'code')
  const name = error instanceof Error ? error.name : ''
  if (code === 'ECONNREFUSED' || code === 'ConnectionRefused') return 'connection refused'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'no such host'
  if (name === 'TimeoutError') return 'it does not answer in time'
  if (/CERT|SSL|TLS|SELF_SIGNED/.test(String(code))) return 'its certificate is not trusted'
  return 'no answer'
}

/** JSON of an answer; undefined when it is none: whoever reads it sees that it is not what was expected. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // What a proxy in between answers is for people, not for programs.
    return undefined
  }
}

type Fields = Readonly<Record<string, shape.Shape<unknown>>>

/** An object with at least these fields; what a newer server adds is left out. */
export function openRecord<const F extends Fields>(fields: F): shape.Shape<shape.Fielded<F>> {
  const exact = shape.record(fields)
  return {
    decode: (value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
      return exact.decode(
        Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(fields, name))),
      )
    },
    describe: exact.describe,
  }
}

/** Narrows an answer of a server. Throws when it is not what this version knows. */
export function decodeResponse<T>(expected: shape.Shape<T>, value: unknown): T {
  const decoded = expected.decode(value)
  if (decoded === undefined)
    throw new SandwireError('version_unsupported', 'Cannot understand the answer of the server')
  return decoded
}
