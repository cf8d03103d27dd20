import { expect, test } from 'bun:test'
import { COMPATIBLE_FROM, describeSchema, PROTOCOL_VERSION, SUBPROTOCOL } from './version.ts'

/** Hash of the schemas of all messages, by version. */
const PINNED = { version: 1, sha256: '145e35043255198b3d3b75855fea665e5ecedd27738b2c0a530a85d4d26150ab' }

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
