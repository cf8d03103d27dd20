import { AllowList } from './allow-list.ts'
import { type IpAddress, NetworkList, parseIpAddress } from './ip-address.ts'
import { innermost, isPublicAddress, isSameAddress } from './refused-addresses.ts'
import { formatHost, type Target } from './target.ts'

/** The network policy of a sandbox. */
export interface NetworkRules {
  readonly policy: 'none' | 'allowlist' | 'open'
  readonly allow: readonly string[]
}

/** Why a target is blocked. Part of the log. */
export type BlockReason =
  /** The sandbox has no network. */
  | 'network_off'
  | 'not_listed'
  /** The host is listed, but not with this port. */
  | 'port_not_listed'
  /** A mail port, blocked under `open` too. */
  | 'port_refused'
  /** Not on the public Internet, or this machine itself. */
  | 'address_refused'

/** Mail submission ports, which an open sandbox would be abused for first. */
const MAIL_PORTS: readonly number[] = [25, 465, 587]

/** Decides by host and port, before name resolution. */
export function createPolicy({ policy, allow }: NetworkRules): (target: Target) => BlockReason | undefined {
  switch (policy) {
    case 'none':
      return () => 'network_off'
    case 'open':
      return ({ port }) => (MAIL_PORTS.includes(port) ? 'port_refused' : undefined)
    case 'allowlist': {
      const list = new AllowList(allow)
      return (target) => {
        const listing = list.find(target)
        if (listing === 'listed') return undefined
        return listing === 'other_port' ? 'port_not_listed' : 'not_listed'
      }
    }
  }
}

/**
 * The addresses that may be dialed for a host; undefined when any of them is not public: a name that mixes public and
 * private addresses is an attack. `own` are addresses and networks (CIDR) of this machine.
 */
export function checkAddresses(
  resolved: readonly string[],
  own: readonly string[],
): readonly IpAddress[] | undefined {
  const ownAddresses = own.flatMap((text) => parseIpAddress(text) ?? [])
  const ownNetworks = new NetworkList(own.filter((text) => text.includes('/')))
  const checked: IpAddress[] = []
  for (const text of resolved) {
    const address = parseIpAddress(text)
    if (address === undefined || !isPublicAddress(address.bytes)) return undefined
    if (ownAddresses.some((mine) => isSameAddress(mine.bytes, address.bytes))) return undefined
    if (ownNetworks.contains(address.bytes) || ownNetworks.contains(innermost(address.bytes)))
      return undefined
    checked.push(address)
  }
  return checked
}

/** One line: what was blocked, and how to allow it. */
export function explainBlock(reason: BlockReason, target: Target): string {
  const host = formatHost(target.host)
  const what = `Sandwire blocked ${host}:${target.port}`
  switch (reason) {
    case 'network_off':
      return `${what}: this sandbox has no network; to allow it, create the sandbox with --allow ${listingOf(target)}`
    case 'not_listed':
      return `${what}: it is not on the allowlist of this sandbox; to allow it, create the sandbox with --allow ${listingOf(target)}`
    case 'port_not_listed':
      return `${what}: ${host} is allowed, but not with this port; to allow it, create the sandbox with --allow ${host}:${target.port}`
    case 'port_refused':
      return `${what}: sandboxes may not send mail; use a mail service on port 443`
    case 'address_refused':
      return `${what}: sandboxes may not connect to this address`
  }
}

function listingOf({ host, port }: Target): string {
  return port === 80 || port === 443 ? formatHost(host) : `${formatHost(host)}:${port}`
}
