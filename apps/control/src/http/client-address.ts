import { parseIpAddress } from '@sandwire/network-policy'

/** Cloudflare's properties of a request. The unit tests compile with Bun's types, which do not have them. */
function cfPropertiesOf(request: Request): object {
  return 'cf' in request && typeof request.cf === 'object' ? (request.cf ?? {}) : {}
}

/** Options for a copy of a request that has the same `cf` properties, with these changes. */
export function copyCfProperties(
  request: Request,
  changes: { readonly clientIp?: string } = {},
): RequestInit {
  const init: RequestInit = {}
  return Object.assign(init, { cf: { ...cfPropertiesOf(request), ...changes } })
}

/** The network address of the client as the platform reports it; empty if unknown. Request headers are not trusted. */
export function addressOf(request: Request): string {
  const platform = cfPropertiesOf(request)
  const peer = 'clientIp' in platform ? platform.clientIp : undefined
  return typeof peer === 'string' ? withoutPort(peer) : ''
}

/** `127.0.0.1:8080` and `[::1]:8080` without their port. */
function withoutPort(peer: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*)):\d+$/.exec(peer) ?? []
  return bracketed ?? plain ?? peer
}

/** The network that is rate-limited as one client: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  const parsed = parseIpAddress(address)
  if (parsed === undefined) return address
  const { bytes, text } = parsed
  if (bytes.length === 4) return text
  const isMapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  return isMapped ? bytes.subarray(12).join('.') : `${bytes.subarray(0, 8).toHex()}/64`
}

export function isLoopback(address: string): boolean {
  const text = parseIpAddress(networkOf(address))?.text ?? parseIpAddress(address)?.text ?? ''
  return text === '::1' || text.startsWith('127.')
}

/** The last address of a list, which the nearest proxy appended; a client may have written the others. */
function lastAddress(list: string): string | undefined {
  const last = (list.split(',').at(-1) ?? '').trim()
  return parseIpAddress(last) === undefined ? undefined : last
}

/** Replaces the client address by the one in a proxy's header. Only a proxy on this machine is trusted. */
export function trustProxy(request: Request, header: string | undefined): Request {
  const list = header === undefined ? null : request.headers.get(header)
  if (list === null || !isLoopback(addressOf(request))) return request
  const address = lastAddress(list)
  if (address === undefined) return request
  const peer = address.includes(':') ? `[${address}]:0` : `${address}:0`
  return new Request(request, copyCfProperties(request, { clientIp: peer }))
}

/** Headers by which a proxy is noticed. workerd's socket removes all others that name a client. */
const PROXY_HEADERS = ['forwarded', 'x-forwarded-for']

/** True if a proxy on this machine sent the request and names the client. */
export function isFromProxy(request: Request): boolean {
  return PROXY_HEADERS.some((name) => request.headers.has(name)) && isLoopback(addressOf(request))
}

/** The request without headers that name a client: without a configured proxy, nothing else may read them. */
export function withoutProxyHeaders(request: Request): Request {
  if (!PROXY_HEADERS.some((name) => request.headers.has(name))) return request
  const headers = new Headers(request.headers)
  for (const name of PROXY_HEADERS) headers.delete(name)
  return new Request(request, { ...copyCfProperties(request), headers })
}
