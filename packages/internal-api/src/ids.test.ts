import { expect, test } from 'bun:test'
import { isSandboxId, sandboxIdOf, encodeId } from './ids.ts'

const SANDBOX = '0123456789abcdefghjkmnpqrstvwxyz'

test('encodeId encodes 128 bits in 26 characters, in bit order', () => {
  expect(encodeId(new Uint8Array(16))).toBe('0'.repeat(26))
  expect(encodeId(new Uint8Array(16).fill(255))).toBe(`${'z'.repeat(25)}w`)
  expect(encodeId(Uint8Array.of(0b00001_000, 0b10_00011_0, 0b0100_0010, 0b1_00110_00, 0b111_01000))).toBe(
    '12345678',
  )
})

test('(threat T7) a sandbox id has one notation', () => {
  expect(isSandboxId(SANDBOX)).toBe(true)
  const wrong = ['', 'dev', SANDBOX.toUpperCase(), SANDBOX.slice(1), `${SANDBOX}0`, `${SANDBOX}\n`]
  for (const text of [...wrong, SANDBOX.replace('z', 'é'), SANDBOX.replace('z', 'i')])
    expect(isSandboxId(text)).toBe(false)
})

test('(threat T7) a session id names its sandbox only when its format is valid', () => {
  const random = '0123456789abcdefghjkmnpqrs'
  expect(sandboxIdOf(`${SANDBOX}.${random}`)).toBe(SANDBOX)
  for (const text of [SANDBOX, `${SANDBOX}.`, `${SANDBOX}.${random}0`, `${SANDBOX}/../${random}`, '.', '..'])
    expect(sandboxIdOf(text)).toBeUndefined()
})
