import { type ErrorCode, isErrorCode, SandwireError } from '@sandwire/protocol'

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
export function errorOf(status: number, body: unknown, retryAfter?: string | null): SandwireError {
  const error = own(body, 'error')
  const code = own(error, 'code')
  const message = own(error, 'message')
  const known = typeof code === 'string' && isErrorCode(code) ? code : codeOfStatus(status)
  const said = typeof message === 'string' ? message : `The server answered ${status}`
  const seconds = /^[0-9]{1,4}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined
  return new SandwireError(known, said, seconds === undefined ? {} : { retryAfterMs: seconds * 1000 })
}

/** Why a request could not be made, in words. */
export function faultOf(error: unknown): string {
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
