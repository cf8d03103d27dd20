import type { NetworkSpec } from '@sandwire/internal'

/** The part of `ctx.container` that decides what its programs reach. */
export interface Interceptor {
  interceptAllOutboundHttp(way: Fetcher): Promise<void>
  interceptOutboundHttps(hosts: string, way: Fetcher): Promise<void>
}

/**
 * Leads what programs in a container ask of the web through a way of ours, which lets through what is listed. Whatever is no
 * web request goes nowhere: a sandbox with a list has no internet.
 */
export async function openNetwork(
  container: Interceptor,
  { policy, allow }: NetworkSpec,
  wayTo: (allow: readonly string[]) => Fetcher,
): Promise<void> {
  if (policy !== 'allowlist') return
  const way = wayTo(allow)
  await container.interceptAllOutboundHttp(way)
  await container.interceptOutboundHttps('*', way)
}
