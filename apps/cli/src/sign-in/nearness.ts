import { BlockList, isIP } from 'node:net'

/** How far away an address is, by how it is spelled. */
export type Nearness = 'thisMachine' | 'link' | 'private' | 'public'

/** Whether somebody may have an address asked. */
export type Verdict = 'fit' | 'needsTrust' | 'never'

type Network = readonly [address: string, bits: number, family: 'ipv4' | 'ipv6']

const NETWORKS: Readonly<Record<Exclude<Nearness, 'public'>, readonly Network[]>> = {
  thisMachine: [
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
const NEAR = ['thisMachine', 'link', 'private'] as const
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
export function nearnessOf(url: string): Nearness {
  const host = new URL(url).hostname.replace(/\.$/, '')
  const address = unmap(host.replace(/^\[|\]$/g, ''))
  const version = isIP(address)
  if (version === 0) {
    if (host === 'localhost' || host.endsWith('.localhost')) return 'thisMachine'
    return PRIVATE_NAME.test(host) ? 'private' : 'public'
  }
  const family = version === 4 ? 'ipv4' : 'ipv6'
  return NEAR.find((near) => listOf(NETWORKS[near]).check(address, family)) ?? 'public'
}

/** Whether whoever is at `asker` may have `url` asked from here: what is near may name what is near, and nobody else may. */
export function mayHaveAsked(url: string, asker: string): Verdict {
  const from = nearnessOf(asker)
  switch (nearnessOf(url)) {
    case 'public':
      return 'fit'
    case 'private':
      return from === 'public' ? 'needsTrust' : 'fit'
    case 'link':
      return from === 'link' ? 'fit' : 'never'
    case 'thisMachine':
      return from === 'thisMachine' ? 'fit' : 'never'
  }
}
