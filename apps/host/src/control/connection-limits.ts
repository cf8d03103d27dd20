/** Most connections by default: a hundred times what a busy server has, in 300 MiB of workerd. */
const MAX_CONNECTIONS = 16_384
/** A connection to a sandbox takes two descriptors; as many are left for those that arrive between two checks. */
const DESCRIPTORS_PER_CONNECTION = 3
/** Databases, sockets of the host and of issuers. */
const OTHER_DESCRIPTORS = 1_024
/** Enough for a class of students behind one address. */
const ADDRESS_PART = 8
const MIN_PER_ADDRESS = 64

/** Limits on connections to the public port. */
export interface ConnectionLimits {
  readonly total: number
  /** For one IPv4 address, or the /64 of an IPv6 address. */
  readonly perAddress: number
}

/** What the operator set. */
export interface ConnectionSettings {
  readonly total?: number | undefined
  readonly perAddress?: number | undefined
}

/** The limits of a process that may open this many files. What the operator set is used as far as the files suffice. */
export function planConnectionLimits(descriptors: number, set: ConnectionSettings = {}): ConnectionLimits {
  const free = descriptors - Math.min(OTHER_DESCRIPTORS, descriptors / 2)
  const possible = Math.max(1, Math.floor(free / DESCRIPTORS_PER_CONNECTION))
  const total = Math.min(possible, set.total ?? MAX_CONNECTIONS)
  const perAddress = set.perAddress ?? Math.max(MIN_PER_ADDRESS, Math.floor(total / ADDRESS_PART))
  return { total, perAddress: Math.min(total, perAddress) }
}

/** The address range that counts as one client: an IPv4 address, or the /64 of an IPv6 address. Its bytes are the kernel's. */
export function networkKey(address: Uint8Array): string {
  if (address.length === 4) return address.join('.')
  const isMapped = address.subarray(0, 10).every((byte) => byte === 0) && address[10] === 255
  return isMapped ? address.subarray(12).join('.') : address.subarray(0, 8).toHex()
}

/** The /64 of `::1`, which nothing else uses. */
const LOOPBACK_V6 = '0'.repeat(16)

/** A proxy on this machine has the connections of all its clients, and limits them itself. */
function isLoopback(network: string): boolean {
  return network.startsWith('127.') || network === LOOPBACK_V6
}

/**
 * How many connections of each network to close. Networks keep equal shares of the total: those with fewer connections keep all,
 * and what they leave is shared by the others.
 */
export function findExcess(
  counts: ReadonlyMap<string, number>,
  { total, perAddress }: ConnectionLimits,
): ReadonlyMap<string, number> {
  const excess = new Map<string, number>()
  let left = total
  let networks = counts.size
  for (const [network, count] of [...counts].toSorted(([, one], [, other]) => one - other)) {
    const share = Math.floor(left / networks)
    const kept = Math.min(count, share, isLoopback(network) ? share : perAddress)
    if (kept < count) excess.set(network, count - kept)
    left -= kept
    networks -= 1
  }
  return excess
}
