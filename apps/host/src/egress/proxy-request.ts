import {
  parseConnectTarget,
  parseRequestTarget,
  formatHostHeader,
  type Target,
} from '@sandwire/network-policy'
import { type BodyEnd, readBodyEnd } from './body-end.ts'
import { parseHead, formatHead, fieldValues, withoutHopHeaders } from './message-head.ts'

/** A request to the proxy. */
export type ProxyRequest =
  | { readonly kind: 'tunnel'; readonly target: Target }
  | {
      readonly kind: 'forward'
      readonly target: Target
      /** The request as sent to the target. */
      readonly head: Buffer
      readonly body: BodyEnd
      /** The client sent `Expect: 100-continue`. */
      readonly expectsContinue: boolean
    }
  | { readonly kind: 'bad'; readonly message: string }

const NOT_HTTP = 'this is not an HTTP/1.1 request'
const BAD_TARGET = 'the target must be host:port for CONNECT, or an http:// URL without user name'
const BAD_BODY = 'the length of the body is ambiguous'
const REQUEST_LINE = /^([A-Z]{1,32}) ([\x21-\x7e]+) HTTP\/1\.([01])$/

function bad(message: string): ProxyRequest {
  return { kind: 'bad', message: `Sandwire proxy: ${message}` }
}

/** Parses the head of a request. Only parsed values are forwarded, never raw text. */
export function readProxyRequest(bytes: Buffer): ProxyRequest {
  const parsed = parseHead(bytes, 'refused')
  const [, method, text = '', minor] = REQUEST_LINE.exec(parsed?.startLine ?? '') ?? []
  if (parsed === undefined || method === undefined) return bad(NOT_HTTP)
  if (method === 'CONNECT') {
    const target = parseConnectTarget(text)
    return target === undefined ? bad(BAD_TARGET) : { kind: 'tunnel', target }
  }
  const target = parseRequestTarget(text)
  if (target === undefined) return bad(BAD_TARGET)
  const body = readBodyEnd(parsed.headers, minor === '0')
  if (body === undefined) return bad(BAD_BODY)
  const kept = withoutHopHeaders(parsed.headers).filter(
    ([name]) => !['host', 'expect'].includes(name.toLowerCase()),
  )
  // The client's version decides whether the response may be chunked.
  const startLine = `${method} ${target.path} HTTP/1.${minor}`
  // The request target determines the Host header.
  const headers = [['Host', formatHostHeader(target)], ...kept, ['Connection', 'close']] as const
  return {
    kind: 'forward',
    target,
    head: formatHead({ startLine, headers }),
    body,
    expectsContinue: fieldValues(parsed.headers, 'expect').some(
      (value) => value.toLowerCase() === '100-continue',
    ),
  }
}
