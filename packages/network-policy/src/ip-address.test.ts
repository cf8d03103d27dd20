import { expect, test } from 'bun:test'
import { parseIpAddress } from './ip-address.ts'

test('an address is formatted in canonical notation', () => {
  const spellings: Record<string, string> = {
    '1.2.3.4': '1.2.3.4',
    '0.0.0.0': '0.0.0.0',
    '::': '::',
    '::1': '::1',
    '1::': '1::',
    '2001:DB8:0:0:0:0:0:1': '2001:db8::1',
    '2001:db8::0:1:0:0': '2001:db8::1:0:0',
    '::ffff:169.254.169.254': '::ffff:a9fe:a9fe',
    '1:2:3:4:5:6:7:8': '1:2:3:4:5:6:7:8',
    '1:2:3:4:5:6:1.2.3.4': '1:2:3:4:5:6:102:304',
    '1:0:3:4:5:6:7:8': '1:0:3:4:5:6:7:8',
  }
  for (const [text, canonical] of Object.entries(spellings))
    expect(parseIpAddress(text)?.text, text).toBe(canonical)
})

test('a notation that programs read differently is refused (threat T21)', () => {
  const odd = [
    '0x7f.1',
    '2130706433',
    '0',
    '127.1',
    '127.0.1',
    '0177.0.0.1',
    '127.0.0.01',
    '1.2.3.256',
    '1.2.3',
  ]
  const odder = ['1.2.3.4.', ' 1.2.3.4', '1.2.3.4\0', '1e1.0.0.1', '+1.2.3.4', '1.2.3.4.5', '', '.', '....']
  for (const text of [...odd, ...odder]) expect(parseIpAddress(text), text).toBeUndefined()
})

test('malformed IPv6 addresses are refused', () => {
  const wrong = [
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    'g::',
    'fe80::1%eth0',
    '[::1]',
  ]
  const worse = [
    '1:2:3:4:5:6:7::8:9',
    '1.2.3.4::',
    '::1.2.3.4:5',
    '::1.2.3',
    '1:2:3:4:5:6:7:8::',
    '::1 ',
    ':1:2:3:4:5:6:7',
  ]
  for (const text of [...wrong, ...worse, '0'.repeat(10_000)])
    expect(parseIpAddress(text), text).toBeUndefined()
})
