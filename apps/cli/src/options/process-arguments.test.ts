import { expect, test } from 'bun:test'
import { findEncodingProblem } from './process-arguments.ts'

const find = (argv: readonly string[], bytes: Uint8Array | undefined) =>
  findEncodingProblem(argv, false, () => bytes)

test('finds an argument whose bytes Bun replaced', () => {
  const changed = Uint8Array.of(0x61, 0, 0xff, 0)
  expect(find(['a', '\ufffd'], changed)?.message).toContain('not valid UTF-8')
  expect(find(['a', 'b'], changed)).toBeUndefined()
})

test('accepts a typed replacement character, and any when the bytes are unknown', () => {
  expect(find(['\ufffd'], new TextEncoder().encode('\ufffd\0'))).toBeUndefined()
  expect(find(['\ufffd'], undefined)).toBeUndefined()
})
