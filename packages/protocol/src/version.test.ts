import { expect, test } from 'bun:test'
import { COMPATIBLE_FROM, describeSchema, PROTOCOL_VERSION, SUBPROTOCOL } from './version.ts'

/** Hash of the schemas of all messages, by version. */
const PINNED = { version: 1, sha256: '01f981af2366864442b6e9653313b5706a40fc13b9fdc138bd2e8a824fe20e4d' }

test('[V2] the message schemas match the hash of this version', () => {
  const sha256 = new Bun.CryptoHasher('sha256').update(describeSchema()).digest('hex')
  const advice = [
    'The schema of a message has changed.',
    'If a release has spoken the old schema: raise PROTOCOL_VERSION, set COMPATIBLE_FROM to the one before,',
    'keep that one working, and pin both here. If none has: pin the new hash.',
    'Then bring the tables of docs/protocol.md up to date.',
  ].join('\n')
  expect({ version: PROTOCOL_VERSION, sha256, advice }).toEqual({ ...PINNED, advice })
})

test('[V1] this version is compatible with itself and at most the previous one', () => {
  expect(PROTOCOL_VERSION - COMPATIBLE_FROM).toBeLessThanOrEqual(1)
  expect(COMPATIBLE_FROM).toBeLessThanOrEqual(PROTOCOL_VERSION)
  expect(SUBPROTOCOL).toBe('sandwire.v1')
})
