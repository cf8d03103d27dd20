import { expect, test } from 'bun:test'
import { joinInput } from './join-input.ts'

test('joinInput joins small pieces in order', () => {
  expect(joinInput(Uint8Array.of(1, 2), Uint8Array.of(3))).toEqual(Uint8Array.of(1, 2, 3))
})

test('joinInput refuses a result larger than a page', () => {
  expect(joinInput(new Uint8Array(4_096), Uint8Array.of(1))).toBeUndefined()
  expect(joinInput(new Uint8Array(4_095), Uint8Array.of(1))?.byteLength).toBe(4_096)
})
