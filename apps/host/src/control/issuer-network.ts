import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { parseIpAddress } from '@sandwire/network-policy'
import { type IssuerConfig } from '@sandwire/operator-settings'
import type { Network } from 'miniflare'
import { isPublicAddress, NOT_PUBLIC } from '../egress/refused-addresses.ts'

/** How far control gets to ask issuers. */
export interface IssuerNetwork {
  readonly hasIssuers: boolean
  /** Addresses of configured issuers that are not public ones. */
  readonly privateAddresses: readonly string[]
  /** Authorities that their certificates may come from besides those of browsers, in PEM. */
  readonly authorities?: string
}

/** No issuer is there, but a machine's credentials are (threat T21). */
const NEVER = ['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::/32', '100.100.100.200/32', '168.63.129.16/32']
const NEVER_ADDRESS = /^(169\.254\.|fe[89ab]|fd00:ec2:|100\.100\.100\.200$|168\.63\.129\.16$)/i

/** Workerd takes them one by one. */
const CERTIFICATES = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs

function hostsOf({ issuer, endpoints }: IssuerConfig): string[] {
  const urls = [issuer, ...Object.values(endpoints).filter((each) => typeof each === 'string')]
  return urls.map((url) => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1'))
}

async function resolve(host: string): Promise<readonly string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address)
  } catch {
    // Not known now. Should it be private later, the next start finds out.
    return []
  }
}

/** The addresses of issuers that are on this machine or in its own network, as they are now. */
export async function findPrivateAddresses(
  issuers: readonly IssuerConfig[],
  resolveHost = resolve,
): Promise<readonly string[]> {
  const hosts = [...new Set(issuers.flatMap(hostsOf))]
  const found = (await Promise.all(hosts.map(resolveHost))).flat()
  return [...new Set(found)].filter((address) => {
    const bytes = parseIpAddress(address)?.bytes
    return bytes !== undefined && !isPublicAddress(bytes) && !NEVER_ADDRESS.test(address)
  })
}

/** A network of workerd: the public one and the named addresses. Of rules that match, the narrowest decides. */
export function describeIssuerNetwork({ hasIssuers, privateAddresses, authorities }: IssuerNetwork): Network {
  if (!hasIssuers) return { allow: [], deny: ['0.0.0.0/0', '::/0'] }
  return {
    allow: ['public', ...privateAddresses.map((address) => `${address}/${isIP(address) === 6 ? 128 : 32}`)],
    deny: [...NOT_PUBLIC, ...NEVER],
    tlsOptions: {
      trustBrowserCas: true,
      ...(authorities !== undefined && { trustedCertificates: authorities.match(CERTIFICATES) ?? [] }),
    },
  }
}
