import {
  parseConnectTarget,
  parseRequestTarget,
  formatHostHeader,
  type RequestTarget,
  type Target,
} from '@sandwire/network-policy'
import { SANDBOX_HEADER } from '@sandwire/internal-api'
import { type BodyEnd, readBodyEnd } from './body-end.ts'
import { parseHead, formatHead, fieldValues, type Header, withoutHopHeaders } from './message-head.ts'

/** A request to the proxy. */
export type ProxyRequest =
  | { readonly kind: 'tunnel'; readonly target: Target }
  | {
      readonly kind: 'forward'
      readonly target: RequestTarget
      /** The sandbox that it is from, as control names it; undefined when the socket tells. */
      readonly sandbox: string | undefined
      /** It asks for a WebSocket: after a 101 response, bytes follow in both directions. */
      readonly isUpgrade: boolean
      /** The request as sent to the target. */
      readonly head: Buffer
      readonly body: BodyEnd
      /** The client sent `Expect: 100-continue`. */
      readonly expectsContinue: boolean
    }
  | { readonly kind: 'bad'; readonly message: string }

const NOT_HTTP = 'this is not an HTTP/1.1 request'
const BAD_TARGET = 'the target must be host:port for CONNECT, or an http:// URL without user name'
const NO_SANDBOX = 'the request names no sandbox'
const BAD_BODY = 'the length of the body is ambiguous'
const REQUEST_LINE = /^([A-Z]{1,32}) ([\x21-\x7e]+) HTTP\/1\.([01])$/

function bad(message: string): ProxyRequest {
  return { kind: 'bad', message: `Sandwire proxy: ${message}` }
}

/**
 * Where a request comes from. A sandbox has a socket of its own, and sends `CONNECT` and `http://` requests. Control sends the requests
 * of all containers, `http://` and `https://`, and names the sandbox of each.
 */
export type RequestSource = 'sandbox' | 'control'

/** Parses the head of a request. Only parsed values are forwarded, never raw text. */
export function readProxyRequest(bytes: Buffer, source: RequestSource = 'sandbox'): ProxyRequest {
  const parsed = parseHead(bytes, 'refused')
  const [, method, text = '', minor] = REQUEST_LINE.exec(parsed?.startLine ?? '') ?? []
  if (parsed === undefined || method === undefined) return bad(NOT_HTTP)
  if (method === 'CONNECT' && source === 'sandbox') {
    const target = parseConnectTarget(text)
    return target === undefined ? bad(BAD_TARGET) : { kind: 'tunnel', target }
  }
  const isFromControl = source === 'control'
  const target = parseRequestTarget(text, isFromControl ? ['http', 'https'] : ['http'])
  if (target === undefined) return bad(BAD_TARGET)
  const body = readBodyEnd(parsed.headers, minor === '0')
  if (body === undefined) return bad(BAD_BODY)
  const [sandbox, ...otherSandboxes] = isFromControl ? fieldValues(parsed.headers, SANDBOX_HEADER) : []
  if (isFromControl && (sandbox === undefined || otherSandboxes.length > 0)) return bad(NO_SANDBOX)
  const isUpgrade =
    isFromControl &&
    fieldValues(parsed.headers, 'upgrade').some((value) => value.toLowerCase() === 'websocket')
  const kept = withoutHopHeaders(parsed.headers).filter(
    ([name]) => !['host', 'expect', SANDBOX_HEADER].includes(name.toLowerCase()),
  )
  // The client's version decides whether the response may be chunked.
  const startLine = `${method} ${target.path} HTTP/1.${minor}`
  const connection: readonly Header[] = isUpgrade
    ? [
        ['Connection', 'Upgrade'],
        ['Upgrade', 'websocket'],
      ]
    : [['Connection', 'close']]
  // The request target determines the Host header.
  const headers: readonly Header[] = [['Host', formatHostHeader(target)], ...kept, ...connection]
  return {
    kind: 'forward',
    target,
    sandbox,
    isUpgrade,
    head: formatHead({ startLine, headers }),
    body,
    expectsContinue: fieldValues(parsed.headers, 'expect').some(
      (value) => value.toLowerCase() === '100-continue',
    ),
  }
}
