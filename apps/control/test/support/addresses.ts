/** Headers in which proxies report the client address. */
export const SPOOFS = [
  'x-forwarded-for',
  'forwarded',
  'x-real-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-pseudo-ipv4',
  'true-client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'fastly-client-ip',
  'x-envoy-external-address',
] as const

/**
 * A header that makes miniflare report this client address to control. It simulates the socket: in production, workerd
 * reads the address from there and supports no such header.
 */
export function fromAddress(address: string): Readonly<Record<string, string>> {
  const peer = address.includes(':') ? `[${address}]:4711` : `${address}:4711`
  return { 'mf-cf-blob': JSON.stringify({ clientIp: peer }) }
}
