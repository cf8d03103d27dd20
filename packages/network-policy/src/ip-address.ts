import ipaddr from 'ipaddr.js'

/** An IP address in network byte order, four or sixteen bytes, and its canonical text (RFC 5952 for IPv6). */
export interface IpAddress {
  readonly bytes: Uint8Array
  readonly text: string
}

const MAX_CHARS = 45
const IPV6_CHARS = /^[0-9A-Fa-f:.]+$/

/**
 * Parses an IPv4 or IPv6 address. Accepts only notations that every program reads alike: IPv4 as four decimal numbers without
 * leading zeros, IPv6 without zone or brackets.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (text.length > MAX_CHARS) return undefined
  if (!text.includes(':')) {
    if (!ipaddr.IPv4.isValidFourPartDecimal(text)) return undefined
    return describe(ipaddr.IPv4.parse(text))
  }
  const dotted = text.includes('.') ? text.slice(text.lastIndexOf(':') + 1) : undefined
  if (dotted !== undefined && !ipaddr.IPv4.isValidFourPartDecimal(dotted)) return undefined
  if (!IPV6_CHARS.test(text) || !ipaddr.IPv6.isValid(text)) return undefined
  return describe(ipaddr.IPv6.parse(text))
}

function describe(address: ipaddr.IPv4 | ipaddr.IPv6): IpAddress {
  return { bytes: Uint8Array.from(address.toByteArray()), text: address.toString() }
}

/** A list of networks in CIDR notation. */
export class NetworkList {
  readonly #networks: readonly [ipaddr.IPv4 | ipaddr.IPv6, number][]

  constructor(networks: readonly string[]) {
    this.#networks = networks.map((network) => ipaddr.parseCIDR(network))
  }

  /** True when one of the networks contains the address. IPv4 networks do not contain IPv6 addresses, nor the reverse. */
  contains(bytes: Uint8Array): boolean {
    const address = ipaddr.fromByteArray([...bytes])
    return this.#networks.some(
      ([network, bits]) => network.kind() === address.kind() && address.match(network, bits),
    )
  }
}
