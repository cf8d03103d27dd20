/** Headers by which proxies say who is behind them. */
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
 * A header that makes miniflare tell control of this network address. It stands for the socket: workerd, started by the
 * host, takes the address from there and knows no such header.
 */
export function comingFrom(address: string): Readonly<Record<string, string>> {
  const peer = address.includes(':') ? `[${address}]:4711` : `${address}:4711`
  return { 'mf-cf-blob': JSON.stringify({ clientIp: peer }) }
}
