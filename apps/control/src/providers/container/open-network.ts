import { GATEWAY_NAME, type NetworkSpec } from '@sandwire/internal-api'
import { AllowList } from '@sandwire/network-policy'

/** The part of `ctx.container` that intercepts its outbound requests. */
export interface Interceptor<Target> {
  interceptAllOutboundHttp(target: Target): Promise<void>
  interceptOutboundHttp(hosts: string, target: Target): Promise<void>
  interceptOutboundHttps(hosts: string, target: Target): Promise<void>
}

export interface NetworkContext<Target> {
  /** True when containers can be given the internet without the machine's own network. */
  readonly hasInternet: boolean
  /** Handles intercepted requests according to a network policy. */
  readonly egressFor: (network: NetworkSpec) => Target
}

/** True when HTTP requests of a container go through control. */
export function isIntercepted({ policy }: NetworkSpec, hasInternet: boolean): boolean {
  return policy === 'allowlist' || (policy === 'open' && !hasInternet)
}

/**
 * Routes the HTTP requests of a container through `egressFor`, which enforces the policy. Other traffic is blocked. The credential
 * gateway is reachable under every policy.
 */
export async function openNetwork<Target>(
  container: Interceptor<Target>,
  network: NetworkSpec,
  { hasInternet, egressFor }: NetworkContext<Target>,
): Promise<void> {
  const { policy, allow } = network
  const target = egressFor(network)
  await container.interceptOutboundHttp(GATEWAY_NAME, target)
  if (!isIntercepted(network, hasInternet)) return
  await container.interceptAllOutboundHttp(target)
  await container.interceptOutboundHttps('*', target)
  const ports = policy === 'allowlist' ? new AllowList(allow).otherPorts : []
  for (const port of ports) {
    await container.interceptOutboundHttp(`*:${port}`, target)
    await container.interceptOutboundHttps(`*:${port}`, target)
  }
}
