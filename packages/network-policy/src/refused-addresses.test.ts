import { describe, expect, test } from 'bun:test'
import { parseIpAddress } from './ip-address.ts'
import { isPublicAddress, isSameAddress } from './refused-addresses.ts'

function bytes(text: string): Uint8Array {
  const address = parseIpAddress(text)
  if (address === undefined) throw new Error(`Not an address: "${text}"`)
  return address.bytes
}

describe('isPublicAddress refuses (threat T21)', () => {
  const refused = {
    loopback: ['127.0.0.1', '127.255.255.254', '::1'],
    'this network': ['0.0.0.0', '0.1.2.3', '::'],
    private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
    'link-local': ['169.254.0.1', 'fe80::1', 'febf::1', 'fec0::1'],
    'carrier-grade NAT': ['100.64.0.1', '100.127.255.255'],
    metadata: ['169.254.169.254', '100.100.100.200', '168.63.129.16', 'fd00:ec2::254', '192.0.0.192'],
    multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
    reserved: [
      '240.0.0.1',
      '255.255.255.255',
      '198.18.0.1',
      '192.0.2.1',
      '203.0.113.9',
      '2001:db8::1',
      '3fff::1',
    ],
    'IPv4 in IPv6': ['::ffff:127.0.0.1', '::ffff:169.254.169.254', '::127.0.0.1', '::ffff:0:127.0.0.1'],
    NAT64: ['64:ff9b::7f00:1', '64:ff9b::169.254.169.254', '64:ff9b:1::a00:1', '64:ff9b:1::808:808'],
    '6to4 and Teredo': [
      '2002:7f00:1::',
      '2002:a9fe:a9fe::1',
      '2002:c0a8:101::',
      '2001::1',
      '2001:0:7f00:1::',
    ],
  }
  for (const [kind, addresses] of Object.entries(refused)) {
    test.each(addresses)(`${kind}: %s`, (address) => expect(isPublicAddress(bytes(address))).toBe(false))
  }
})

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '168.63.129.17',
  '192.0.1.1',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450::1',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
  '2002:808:808::1',
])('isPublicAddress accepts %s', (address) => expect(isPublicAddress(bytes(address))).toBe(true))

test('treats an IPv4 address and its IPv6 forms as equal', () => {
  expect(isSameAddress(bytes('8.8.8.8'), bytes('::ffff:808:808'))).toBe(true)
  expect(isSameAddress(bytes('64:ff9b::808:808'), bytes('8.8.8.8'))).toBe(true)
  expect(isSameAddress(bytes('8.8.8.8'), bytes('8.8.4.4'))).toBe(false)
  expect(isSameAddress(bytes('2606::1'), bytes('2606::2'))).toBe(false)
})
