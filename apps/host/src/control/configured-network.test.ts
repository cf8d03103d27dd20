import { describe, expect, test } from 'bun:test'
import { issuerFromPreset } from '@sandwire/operator-settings'
import {
  describeNetwork,
  describeServiceNetwork,
  findPrivateAddresses,
  hostsOfIssuers,
} from './configured-network.ts'

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'public.example': ['93.184.216.34', '2606:2800:220:1::1'],
  'lan.example': ['10.1.2.3', '93.184.216.34', 'fd12::1'],
  'metadata.example': ['169.254.169.254', 'fd00:ec2::254', 'fe80::1', '100.100.100.200', '168.63.129.16'],
  '127.0.0.1': ['127.0.0.1'],
}

const pem = (text: string): string => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----`

function find(...urls: string[]): Promise<readonly string[]> {
  const issuers = urls.map((issuer) => issuerFromPreset('oidc', { issuer, audience: 'a' }))
  return findPrivateAddresses(hostsOfIssuers(issuers), async (host) => NAMES[host] ?? [])
}

describe('the network of configured servers (threat T21)', () => {
  test('is empty without any', () => {
    expect(describeNetwork({ isOpen: false, privateAddresses: [] })).toEqual({
      allow: [],
      deny: ['0.0.0.0/0', '::/0'],
    })
  })

  test('allows private addresses only for configured ones', async () => {
    expect(await find('https://public.example', 'https://unknown.example')).toEqual([])
    expect(await find('https://lan.example', 'http://127.0.0.1:1')).toEqual([
      '10.1.2.3',
      'fd12::1',
      '127.0.0.1',
    ])
  })

  test('never allows metadata services', async () => {
    expect(await find('https://metadata.example')).toEqual([])
    const { deny } = describeNetwork({ isOpen: true, privateAddresses: [] })
    for (const network of ['169.254.0.0/16', 'fe80::/10', '127.0.0.0/8', '10.0.0.0/8', '168.63.129.16/32'])
      expect(deny).toContain(network)
  })

  test('allows single addresses, and the authorities that are given', () => {
    const network = describeNetwork({
      isOpen: true,
      privateAddresses: ['10.1.2.3', 'fd12::1'],
      authorities: `# one\n${pem('a')}\n# two\n${pem('b')}\n`,
    })
    expect(network.allow).toEqual(['public', '10.1.2.3/32', 'fd12::1/128'])
    expect(network.tlsOptions).toEqual({ trustBrowserCas: true, trustedCertificates: [pem('a'), pem('b')] })
  })
})

test('the network of a bucket is that of its endpoint: one private address, or public ones', async () => {
  const at = (address: string) => describeServiceNetwork('https://s3.example:9000', async () => [address])
  expect(await at('10.1.2.3')).toMatchObject({ allow: ['10.1.2.3/32'], deny: ['0.0.0.0/0', '::/0'] })
  expect(await at('127.0.0.1')).toMatchObject({ allow: ['127.0.0.1/32'], deny: ['0.0.0.0/0', '::/0'] })
  const open = await at('93.184.216.34')
  expect(open.allow).toEqual(['public'])
  expect(open.deny).toContain('10.0.0.0/8')
  // A metadata service is no store.
  expect((await at('169.254.169.254')).allow).toEqual(['public'])
})
