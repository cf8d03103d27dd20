import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isPublicAddress, NOT_PUBLIC, parseIpAddress } from '@sandwire/network-policy'
import { type IssuerConfig } from '@sandwire/operator-settings'
import type { Network } from 'miniflare'

/** Control's network access to servers that the operator configured: issuers, or upstreams of the credential gateway. */
export interface ConfiguredNetwork {
  /** False: nothing is configured, and nothing reachable. */
  readonly isOpen: boolean
  /** Non-public addresses of configured servers. */
  readonly privateAddresses: readonly string[]
  /** Certificate authorities in addition to those of browsers; PEM. */
  readonly authorities?: string
}

/** Metadata services with credentials of the machine, never a configured server (threat T21). */
const NEVER = ['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::/32', '100.100.100.200/32', '168.63.129.16/32']
const NEVER_ADDRESS = /^(169\.254\.|fe[89ab]|fd00:ec2:|100\.100\.100\.200$|168\.63\.129\.16$)/i

/** workerd takes a list of single certificates. */
const CERTIFICATES = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs

function hostsOf({ issuer, endpoints }: IssuerConfig): string[] {
  const urls = [issuer, ...Object.values(endpoints).filter((each) => typeof each === 'string')]
  return urls.map((url) => new URL(url).hostname)
}

/** Host names of issuers and their endpoints. */
export function hostsOfIssuers(issuers: readonly IssuerConfig[]): readonly string[] {
  return issuers.flatMap(hostsOf)
}

async function resolve(host: string): Promise<readonly string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address)
  } catch {
    // Not resolvable now; the next start tries again.
    return []
  }
}

/** Current private addresses of hosts. */
export async function findPrivateAddresses(
  names: readonly string[],
  resolveHost = resolve,
): Promise<readonly string[]> {
  const hosts = [...new Set(names.map((name) => name.replace(/^\[(.*)\]$/, '$1')))]
  const found = (await Promise.all(hosts.map(resolveHost))).flat()
  return [...new Set(found)].filter((address) => {
    const bytes = parseIpAddress(address)?.bytes
    return bytes !== undefined && !isPublicAddress(bytes) && !NEVER_ADDRESS.test(address)
  })
}

function asNetwork(address: string): string {
  return `${address}/${isIP(address) === 6 ? 128 : 32}`
}

/** Control's network access to one service, such as an S3-compatible store: its private addresses, or else public addresses only. */
export async function describeServiceNetwork(endpoint: string, resolveHost = resolve): Promise<Network> {
  const privateAddresses = await findPrivateAddresses([new URL(endpoint).hostname], resolveHost)
  if (privateAddresses.length > 0)
    return {
      allow: privateAddresses.map(asNetwork),
      deny: ['0.0.0.0/0', '::/0'],
      tlsOptions: { trustBrowserCas: true },
    }
  return { allow: ['public'], deny: [...NOT_PUBLIC, ...NEVER], tlsOptions: { trustBrowserCas: true } }
}

/** workerd's network service: public addresses and the given ones. The most specific rule wins. */
export function describeNetwork({ isOpen, privateAddresses, authorities }: ConfiguredNetwork): Network {
  if (!isOpen) return { allow: [], deny: ['0.0.0.0/0', '::/0'] }
  return {
    allow: ['public', ...privateAddresses.map(asNetwork)],
    deny: [...NOT_PUBLIC, ...NEVER],
    tlsOptions: {
      trustBrowserCas: true,
      ...(authorities !== undefined && { trustedCertificates: authorities.match(CERTIFICATES) ?? [] }),
    },
  }
}
