import { NetworkList } from './ip-address.ts'

/** IPv4 networks that are blocked under every policy: everything outside the public Internet, and metadata services. */
const REFUSED_IPV4 = [
  /** This network. */
  '0.0.0.0/8',
  /** Private. */
  '10.0.0.0/8',
  /** Carrier-grade NAT; a cloud's metadata at 100.100.100.200. */
  '100.64.0.0/10',
  /** Loopback. */
  '127.0.0.0/8',
  /** Azure's metadata and DNS, in public space. */
  '168.63.129.16/32',
  /** Link-local; most clouds' metadata at 169.254.169.254. */
  '169.254.0.0/16',
  /** Private. */
  '172.16.0.0/12',
  /** Protocol assignments. */
  '192.0.0.0/24',
  /** Documentation. */
  '192.0.2.0/24',
  /** 6to4 relays, deprecated. */
  '192.88.99.0/24',
  /** Private. */
  '192.168.0.0/16',
  /** Benchmarks. */
  '198.18.0.0/15',
  /** Documentation. */
  '198.51.100.0/24',
  '203.0.113.0/24',
  /** Multicast. */
  '224.0.0.0/4',
  /** Reserved, broadcast. */
  '240.0.0.0/4',
]

/** IPv6 networks that embed an IPv4 address, which is checked instead. */
const CARRIES_IPV4 = [
  { network: '::ffff:0:0/96', at: 12 },
  { network: '64:ff9b::/96', at: 12 },
  { network: '2002::/16', at: 2 },
]

/** Global unicast. Everything outside, such as the metadata service at fd00:ec2::/32, is blocked. */
const PUBLIC_IPV6 = '2000::/3'

/** Non-public networks within it. */
const REFUSED_IPV6 = [
  /** Protocol assignments, Teredo among them. */
  '2001::/23',
  /** Documentation. */
  '2001:db8::/32',
  '3fff::/20',
]

/** All blocked networks in CIDR notation. */
export const NOT_PUBLIC: readonly string[] = [
  ...REFUSED_IPV4,
  ...REFUSED_IPV6,
  ...CARRIES_IPV4.map(({ network: text }) => text).filter((text) => !text.startsWith('::ffff:')),
  '::/128',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
  'ff00::/8',
]

const refusedIpv4 = new NetworkList(REFUSED_IPV4)
const refusedIpv6 = new NetworkList(REFUSED_IPV6)
const publicIpv6 = new NetworkList([PUBLIC_IPV6])
const carriers = CARRIES_IPV4.map(({ network, at }) => ({ networks: new NetworkList([network]), at }))

/** The IPv4 address that an IPv6 address embeds, or the address itself. */
export function innermost(bytes: Uint8Array): Uint8Array {
  const carrier = carriers.find(({ networks }) => networks.contains(bytes))
  return carrier === undefined ? bytes : bytes.subarray(carrier.at, carrier.at + 4)
}

/** True for an address on the public Internet. Addresses of this machine are checked separately. */
export function isPublicAddress(address: Uint8Array): boolean {
  const bytes = innermost(address)
  if (bytes.length === 4) return !refusedIpv4.contains(bytes)
  return publicIpv6.contains(bytes) && !refusedIpv6.contains(bytes)
}

/** True for equal addresses, and for an IPv4 address and its IPv6 forms. */
export function isSameAddress(one: Uint8Array, other: Uint8Array): boolean {
  const [left, right] = [innermost(one), innermost(other)]
  return left.length === right.length && left.every((byte, index) => byte === right[index])
}
