import { expect, test } from 'bun:test'
import { checkAddresses } from '@sandwire/network-policy'
import { listOwnAddresses, parseIpv4Routes, parseIpv6Routes } from './own-addresses.ts'

const FIB_TRIE = `Main:
  +-- 0.0.0.0/1 2 0 2
     |-- 9.9.8.0
        /24 host LOCAL
     |-- 9.9.9.0
        /24 link UNICAST
     |-- 9.9.9.77
        /32 host LOCAL
     |-- 9.9.9.255
        /32 link BROADCAST
Local:
  +-- 0.0.0.0/1 2 0 2
     |-- 9.9.9.77
        /32 host LOCAL
Id 100:
  |-- 0.0.0.0
     /0 host LOCAL
`
const NONE = '00000000000000000000000000000000 00 00000000000000000000000000000000'
const IPV6_ROUTE = `2a001450000000000000000000000000 40 ${NONE} 00000100 00000001 00000000 00000001      eth0
2a001450000000000000000000000077 80 ${NONE} 00000000 00000004 00000000 80200001      eth0
2a001450000100000000000000000000 40 ${NONE} 00000400 00000002 00000000 80000001       lo
00000000000000000000000000000000 00 ${NONE} 00000400 00000002 00000000 80000001       lo
`

test('local routes are networks of this machine, but not those of other routing tables', () => {
  expect(parseIpv4Routes(FIB_TRIE)).toEqual(['9.9.8.0/24', '9.9.9.77/32'])
  expect(parseIpv6Routes(IPV6_ROUTE)).toEqual([
    '2a00:1450:0000:0000:0000:0000:0000:0077/128',
    '2a00:1450:0001:0000:0000:0000:0000:0000/64',
  ])
})

/** Lists the addresses in a network of its own: an interface that is down, and local routes without an interface. */
const IN_NAMESPACE = `ip link set lo up
ip link add down0 type bridge && ip addr add 9.9.7.77/24 dev down0
ip route add local 9.9.8.0/24 dev lo
ip -6 route add local 2a00:1450:1::/64 dev lo
exec "$0" -e 'const { listOwnAddresses } = await import(process.argv[1]); console.log(JSON.stringify(listOwnAddresses()))' "$1"`

test.skipIf(process.getuid?.() !== 0)(
  'an address without an active interface is one of this machine (threat T21)',
  () => {
    const source = new URL('own-addresses.ts', import.meta.url).pathname
    const run = Bun.spawnSync(['unshare', '-n', 'sh', '-c', IN_NAMESPACE, process.execPath, source])
    const own = JSON.parse(run.stdout.toString()) as readonly string[]
    for (const address of ['9.9.7.77', '9.9.8.5', '2a00:1450:1::5'])
      expect(checkAddresses([address], own), address).toBeUndefined()
    expect(checkAddresses(['9.9.7.78', '2a00:1450:2::5'], own)).toHaveLength(2)
  },
)

test('an address on the Internet is none of this machine', () => {
  expect(checkAddresses(['1.1.1.1', '2606:4700:4700::1111'], listOwnAddresses())).toHaveLength(2)
})
