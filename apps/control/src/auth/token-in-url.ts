import { SandwireError } from '@sandwire/protocol'
import { hasClaim } from './browser-cookie.ts'
import { isSocketPath, readUpgrade } from '../http/upgrade.ts'

/** The parameter that old clients put their bearer into, when they can set no header. */
const PARAMETER = 'token'
/** As long as a header may be. */
const MAX_TOKEN_CHARS = 8 * 1024

function refused(why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${PARAMETER}": ${why}`)
}

function faultOf(request: Request, url: URL): string | undefined {
  const { headers } = request
  if (!isSocketPath(url.pathname) || !readUpgrade(request).isUpgrade) return 'only an attach may have it'
  // Two credentials could be two people; which of them is meant is not ours to guess.
  if (headers.has('authorization') || hasClaim(headers)) return 'there is another credential'
  if ((headers.get('sec-websocket-protocol') ?? '').includes('sandwire.ticket.'))
    return 'there is another credential'
  const values = url.searchParams.getAll(PARAMETER)
  if (values.length !== 1) return 'given twice'
  return values.every((value) => /^[\x21-\x7e]+$/.test(value) && value.length <= MAX_TOKEN_CHARS)
    ? undefined
    : 'not a token'
}

/**
 * The request with a token of its URL in the header where it belongs, and nowhere else; undefined when there is none.
 * URLs end up in histories and in the logs of whatever is between, so this is off unless an operator turns it on.
 */
export function takeTokenFromUrl(request: Request, isOn: boolean): Request | undefined {
  const url = new URL(request.url)
  if (!url.searchParams.has(PARAMETER)) return undefined
  if (!isOn) throw refused('a token travels in a header')
  const fault = faultOf(request, url)
  if (fault !== undefined) throw refused(fault)
  const headers = new Headers(request.headers)
  headers.set('authorization', `Bearer ${url.searchParams.get(PARAMETER) ?? ''}`)
  url.searchParams.delete(PARAMETER)
  return new Request(url, { method: request.method, headers, ...(request.cf && { cf: request.cf }) })
}
