import { expect, test } from 'bun:test'
import { parseBytes, parseSeconds } from './amounts.ts'

test('parseBytes parses sizes', () => {
  const sizes = {
    '1048576': 1024 ** 2,
    '512M': 512 * 1024 ** 2,
    '1g': 1024 ** 3,
    '1.5GiB': 1.5 * 1024 ** 3,
    '2KB': 2048,
  }
  for (const [text, bytes] of Object.entries(sizes)) expect(parseBytes(text), text).toBe(bytes)
  for (const text of ['', 'G', '-1', '1e3', '1 G', '1X', '0x10', '999999999999999T', '1..5G'])
    expect(parseBytes(text), text).toBeUndefined()
})

test('parseSeconds parses durations', () => {
  const spans = { '90': 90, '90s': 90, '10m': 600, '2h': 7200, '1d': 86_400 }
  for (const [text, seconds] of Object.entries(spans)) expect(parseSeconds(text), text).toBe(seconds)
  for (const text of ['', 'm', '1.5h', '-1s', '1w', '1 h']) expect(parseSeconds(text), text).toBeUndefined()
})
