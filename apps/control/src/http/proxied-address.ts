import { parseIpAddress } from '@sandwire/network-policy'
import { addressOf } from './client-address.ts'
import { isLoopback } from './address-limit.ts'

/** The last address in a list: what the nearest proxy added, whatever a client wrote before it. */
function lastAddress(list: string): string | undefined {
  const last = (list.split(',').at(-1) ?? '').trim()
  return parseIpAddress(last) === undefined ? undefined : last
}

/**
 * The request as if it came from whom a proxy names in this header. Only a proxy on this machine is believed: anybody else could
 * write what they like.
 */
export function believeProxy(request: Request, header: string | undefined): Request {
  const list = header === undefined ? null : request.headers.get(header)
  if (list === null || !isLoopback(addressOf(request))) return request
  const address = lastAddress(list)
  if (address === undefined) return request
  const peer = address.includes(':') ? `[${address}]:0` : `${address}:0`
  return new Request(request, { cf: { ...request.cf, clientIp: peer } })
}
