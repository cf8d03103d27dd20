import { type NetworkSpec } from '@sandwire/internal-api'
import { AllowList } from '@sandwire/network-policy'

/** The part of `ctx.container` that decides what its programs reach. */
export interface Interceptor<Way> {
  interceptAllOutboundHttp(way: Way): Promise<void>
  interceptOutboundHttp(hosts: string, way: Way): Promise<void>
  interceptOutboundHttps(hosts: string, way: Way): Promise<void>
}

export interface Surroundings<Way> {
  /** Whether the internet that containers get is nothing but that: on one machine it is that machine's own network too. */
  readonly hasInternet: boolean
  /** Leads web requests to what a network allows. */
  readonly wayTo: (network: NetworkSpec) => Way
}

/** Whether web requests of a network are led through control. */
export function isLed({ policy }: NetworkSpec, hasInternet: boolean): boolean {
  return policy === 'allowlist' || (policy === 'open' && !hasInternet)
}

/**
 * Leads what programs in a container ask of the web through a way of ours, which lets through what is allowed. Whatever is no
 * web request goes nowhere.
 */
export async function openNetwork<Way>(
  container: Interceptor<Way>,
  network: NetworkSpec,
  { hasInternet, wayTo }: Surroundings<Way>,
): Promise<void> {
  const { policy, allow } = network
  if (!isLed(network, hasInternet)) return
  const way = wayTo(network)
  await container.interceptAllOutboundHttp(way)
  await container.interceptOutboundHttps('*', way)
  const ports = policy === 'allowlist' ? new AllowList(allow).otherPorts : []
  for (const port of ports) {
    await container.interceptOutboundHttp(`*:${port}`, way)
    await container.interceptOutboundHttps(`*:${port}`, way)
  }
}
