import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'

/** The kernel's routes. Interfaces alone do not tell: addresses of load balancers are local routes, and interfaces without a link keep theirs. */
const IPV4_ROUTES = '/proc/net/fib_trie'
const IPV6_ROUTES = '/proc/net/ipv6_route'
/** Other tables apply to marked packets only, as those of transparent proxies. */
const TABLES = ['Main:', 'Local:']
const RTF_LOCAL = 0x80000000

/** Local networks in `/proc/net/fib_trie`: an address in a line of its own, then a line for each route with prefix length and type. */
export function parseIpv4Routes(text: string): readonly string[] {
  const found = new Set<string>()
  let isRelevant = false
  let address = ''
  for (const line of text.split('\n')) {
    if (/^\S/.test(line)) isRelevant = TABLES.includes(line)
    address = /\|-- ([0-9.]+)$/.exec(line)?.[1] ?? address
    const bits = /^ +\/(\d+) \w+ LOCAL$/.exec(line)?.[1]
    if (isRelevant && bits !== undefined) found.add(`${address}/${bits}`)
  }
  return [...found]
}

/** Local networks in `/proc/net/ipv6_route`, which does not name tables: the default route of a transparent proxy is left out. */
export function parseIpv6Routes(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const [destination = '', bits = '0', , , , , , , flags = '0'] = line.trim().split(/\s+/)
    const isLocal = (Number.parseInt(flags, 16) & RTF_LOCAL) !== 0 && bits !== '00'
    const groups = destination.match(/[0-9a-f]{4}/g)
    return isLocal && groups?.length === 8 ? [`${groups.join(':')}/${Number.parseInt(bits, 16)}`] : []
  })
}

function read(file: string, parse: (text: string) => readonly string[]): readonly string[] {
  try {
    return parse(readFileSync(file, 'utf8'))
  } catch {
    // A kernel without this family.
    return []
  }
}

/** Addresses and networks (CIDR) whose packets the kernel delivers to this machine. */
export function listOwnAddresses(): readonly string[] {
  const ofInterfaces = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return [
    ...ofInterfaces.map(({ address }) => address),
    ...read(IPV4_ROUTES, parseIpv4Routes),
    ...read(IPV6_ROUTES, parseIpv6Routes),
  ]
}
