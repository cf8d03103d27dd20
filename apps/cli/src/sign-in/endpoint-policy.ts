import { BlockList, isIP } from 'node:net'
import { HintedError } from '../errors/errors.ts'
import { UsageError } from '../errors/errors.ts'

/** The network that an address belongs to, by its text. */
export type NetworkScope = 'loopback' | 'linkLocal' | 'private' | 'public'

/** Whether a server or issuer may direct the CLI to an address. */
type EndpointDecision = 'allowed' | 'needsTrust' | 'denied'

type Network = readonly [address: string, bits: number, family: 'ipv4' | 'ipv6']

const NETWORKS: Readonly<Record<Exclude<NetworkScope, 'public'>, readonly Network[]>> = {
  loopback: [
    ['127.0.0.0', 8, 'ipv4'],
    // Also reaches this machine.
    ['0.0.0.0', 8, 'ipv4'],
    ['::', 127, 'ipv6'],
  ],
  linkLocal: [
    // Includes cloud metadata services.
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
const LOCAL_SCOPES = ['loopback', 'linkLocal', 'private'] as const
const PRIVATE_NAME = /^[^.]+$|\.(local|internal|lan|home\.arpa)$/

function toBlockList(networks: readonly Network[]): BlockList {
  const list = new BlockList()
  for (const [address, bits, family] of networks) list.addSubnet(address, bits, family)
  return list
}

/** The IPv4 address in an IPv4-mapped IPv6 address, as URLs write it. */
function unmap(address: string): string {
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address) ?? []
  if (high === undefined || low === undefined) return address
  return [high, low].flatMap((part) => [parseInt(part, 16) >> 8, parseInt(part, 16) & 255]).join('.')
}

/**
 * The network of a URL's host. A public name that resolves to a private address counts as public: HTTPS requires a
 * certificate for that name, and plain HTTP is only used for loopback names.
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
  return LOCAL_SCOPES.find((scope) => toBlockList(NETWORKS[scope]).check(address, family)) ?? 'public'
}

/** Decides whether `source` may direct the CLI to `url`: only local hosts may name local hosts. */
export function endpointDecision(url: string, source: string): EndpointDecision {
  const from = networkScopeOf(source)
  switch (networkScopeOf(url)) {
    case 'public':
      return 'allowed'
    case 'private':
      return from === 'public' ? 'needsTrust' : 'allowed'
    case 'linkLocal':
      return from === 'linkLocal' ? 'allowed' : 'denied'
    case 'loopback':
      return from === 'loopback' ? 'allowed' : 'denied'
  }
}

/** Who named the endpoints. */
export interface EndpointSource {
  readonly kind: 'server' | 'issuer'
  readonly url: string
  /** The user allowed addresses in a private network (`--trust`). */
  readonly isTrusted: boolean
  /** Hint that shows how to allow them. */
  readonly trustHint: string
}

const SCOPE_NAMES: Readonly<Record<NetworkScope, string>> = {
  loopback: 'this machine',
  linkLocal: 'the local link',
  private: 'a private network',
  public: 'the Internet',
}

/** Throws if the source may not direct the CLI to one of these addresses. */
export function checkEndpoints(urls: readonly (string | undefined)[], source: EndpointSource): void {
  for (const url of urls) {
    if (url === undefined) continue
    const what = `Cannot sign in: the ${source.kind} refers to ${new URL(url).host}`
    const decision = endpointDecision(url, source.url)
    if (decision === 'denied')
      throw new HintedError(
        'no_issuer',
        `${what} on ${SCOPE_NAMES[networkScopeOf(url)]}, but is not there itself`,
        'do not sign in unless you know why it does that',
      )
    if (decision === 'needsTrust' && !source.isTrusted)
      throw new UsageError(`${what} in a private network`, source.trustHint)
  }
}
