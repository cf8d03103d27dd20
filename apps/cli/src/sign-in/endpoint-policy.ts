import { BlockList, isIP } from 'node:net'
import { HintedError } from '../errors/errors.ts'
import { UsageError } from '../options/words.ts'

/** How far away an address is, by how it is spelled. */
export type NetworkScope = 'loopback' | 'link' | 'private' | 'public'

/** Whether somebody may have an address asked. */
export type EndpointDecision = 'fit' | 'needsTrust' | 'never'

type Network = readonly [address: string, bits: number, family: 'ipv4' | 'ipv6']

const NETWORKS: Readonly<Record<Exclude<NetworkScope, 'public'>, readonly Network[]>> = {
  loopback: [
    ['127.0.0.0', 8, 'ipv4'],
    // Leads to this machine as well.
    ['0.0.0.0', 8, 'ipv4'],
    ['::', 127, 'ipv6'],
  ],
  link: [
    // A cloud's metadata among it.
    ['169.254.0.0', 16, 'ipv4'],
    ['fe80::', 10, 'ipv6'],
  ],
  private: [
    ['10.0.0.0', 8, 'ipv4'],
    ['172.16.0.0', 12, 'ipv4'],
    ['192.168.0.0', 16, 'ipv4'],
    ['100.64.0.0', 10, 'ipv4'],
    ['fc00::', 7, 'ipv6'],
  ],
}
const NEAR = ['loopback', 'link', 'private'] as const
const PRIVATE_NAME = /^[^.]+$|\.(local|internal|lan|home\.arpa)$/

function listOf(networks: readonly Network[]): BlockList {
  const list = new BlockList()
  for (const [address, bits, family] of networks) list.addSubnet(address, bits, family)
  return list
}

/** The IPv4 address in an IPv6 one of `::ffff:0:0/96`, as a URL spells it. */
function unmap(address: string): string {
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address) ?? []
  if (high === undefined || low === undefined) return address
  return [high, low].flatMap((part) => [parseInt(part, 16) >> 8, parseInt(part, 16) & 255]).join('.')
}

/**
 * How far away a URL leads. A name that only resolves to something near counts as public: over HTTPS nothing is sent there
 * without a certificate for that name, and plain HTTP is for this machine's own names alone.
 */
export function networkScopeOf(url: string): NetworkScope {
  const host = new URL(url).hostname.replace(/\.$/, '')
  const address = unmap(host.replace(/^\[|\]$/g, ''))
  const version = isIP(address)
  if (version === 0) {
    if (host === 'localhost' || host.endsWith('.localhost')) return 'loopback'
    return PRIVATE_NAME.test(host) ? 'private' : 'public'
  }
  const family = version === 4 ? 'ipv4' : 'ipv6'
  return NEAR.find((near) => listOf(NETWORKS[near]).check(address, family)) ?? 'public'
}

/** Whether whoever is at `asker` may have `url` asked from here: what is near may name what is near, and nobody else may. */
export function endpointDecision(url: string, source: string): EndpointDecision {
  const from = networkScopeOf(source)
  switch (networkScopeOf(url)) {
    case 'public':
      return 'fit'
    case 'private':
      return from === 'public' ? 'needsTrust' : 'fit'
    case 'link':
      return from === 'link' ? 'fit' : 'never'
    case 'loopback':
      return from === 'loopback' ? 'fit' : 'never'
  }
}

/** Who wants addresses asked. */
export interface EndpointSource {
  readonly is: 'server' | 'issuer'
  readonly url: string
  /** Somebody said that it may name addresses of a private network. */
  readonly isTrusted: boolean
  /** How to say so. */
  readonly trustHint: string
}

const WHERE: Readonly<Record<NetworkScope, string>> = {
  loopback: 'this machine',
  link: 'the local link',
  private: 'a private network',
  public: 'the Internet',
}

/** Throws unless all these addresses may be asked because somebody elsewhere says so. */
export function checkEndpoints(urls: readonly (string | undefined)[], source: EndpointSource): void {
  for (const url of urls) {
    if (url === undefined) continue
    const what = `Cannot sign in: the ${source.is} wants ${new URL(url).host} asked`
    const verdict = endpointDecision(url, source.url)
    if (verdict === 'never')
      throw new HintedError(
        'no_issuer',
        `${what}, which is ${WHERE[networkScopeOf(url)]}, where it is not itself`,
        'do not sign in there unless you know why it wants that',
      )
    if (verdict === 'needsTrust' && !source.isTrusted)
      throw new UsageError(`${what}, which is in a private network`, source.trustHint)
  }
}
