import { expect, test } from 'bun:test'
import { findEncodingProblem } from './process-arguments.ts'

const find = (argv: readonly string[], bytes: Uint8Array | undefined) =>
  findEncodingProblem(argv, false, () => bytes)

test('an argument that was changed on its way here is found', () => {
  const changed = Uint8Array.of(0x61, 0, 0xff, 0)
  expect(find(['a', '\ufffd'], changed)?.message).toContain('not UTF-8')
  expect(find(['a', 'b'], changed)).toBeUndefined()
})

test('the character that stands for such bytes is one like any other, and where nothing is known so is it', () => {
  expect(find(['\ufffd'], new TextEncoder().encode('\ufffd\0'))).toBeUndefined()
  expect(find(['\ufffd'], undefined)).toBeUndefined()
})
