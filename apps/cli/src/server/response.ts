import { type ErrorCode, type ErrorDetails, isErrorCode, SandwireError, schema } from '@sandwire/protocol'

/** Reads a response body as text. Throws as soon as it exceeds the limit. */
export async function readBounded(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new SandwireError('frame_too_large', 'The response is too long')
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

function ownProperty(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined
}

function textProperty(value: unknown, name: string): string | undefined {
  const property = ownProperty(value, name)
  return typeof property === 'string' ? property : undefined
}

function readDetails(error: unknown): ErrorDetails {
  const field = textProperty(error, 'field')
  const problem = textProperty(error, 'problem')
  return {
    ...(field === undefined ? {} : { field }),
    ...(problem === undefined ? {} : { problem }),
    ...(textProperty(error, 'reason') === 'sign_in_ended' ? { reason: 'sign_in_ended' } : {}),
  }
}

/** The error in a response, or one derived from its status. */
export function errorFromResponse(status: number, body: unknown, retryAfter?: string | null): SandwireError {
  const error = ownProperty(body, 'error')
  const code = textProperty(error, 'code')
  const known = code !== undefined && isErrorCode(code) ? code : codeOfStatus(status)
  const message = textProperty(error, 'message') ?? `The server responded with status ${status}`
  const seconds = /^[0-9]{1,4}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined
  return new SandwireError(known, message, {
    details: readDetails(error),
    retryAfterMs: seconds === undefined ? undefined : seconds * 1000,
  })
}

/** Why a request failed before a response arrived. */
export function describeNetworkError(error: unknown): string {
  const code = ownProperty(error, 'code')
  const name = error instanceof Error ? error.name : ''
  if (code === 'ECONNREFUSED' || code === 'ConnectionRefused') return 'connection refused'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'no such host'
  if (name === 'TimeoutError') return 'timed out'
  if (/CERT|SSL|TLS|SELF_SIGNED/.test(String(code))) return 'its certificate is not trusted'
  return 'no answer'
}

/** Parses JSON; undefined when the text is not JSON, which no decoder accepts. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // An HTML page of a proxy, for example.
    return undefined
  }
}

type Fields = Readonly<Record<string, schema.Schema<unknown>>>

/** An object with at least these fields; fields that a newer server adds are dropped. */
export function looseObject<const F extends Fields>(fields: F): schema.Schema<schema.RecordOf<F>> {
  const exact = schema.record(fields)
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

/** Decodes a response. Throws when it does not have the expected schema. */
export function decodeResponse<T>(expected: schema.Schema<T>, value: unknown): T {
  const decoded = expected.decode(value)
  if (decoded === undefined)
    throw new SandwireError('version_unsupported', 'Cannot understand the response of the server')
  return decoded
}
