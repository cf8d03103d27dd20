import { expect, test } from 'bun:test'
import { editLine } from './ask-secret.ts'

test.each([
  ['abc', 'abc'],
  ['ab\x7fc\x08d', 'ad'],
  ['wrong\x15right', 'right'],
  ['\x7f\x7fa\x1bb\x00', 'ab'],
])('editLine makes %j into %j', (typed, line) => {
  const edited = [...Buffer.from(typed)].reduce<readonly number[]>(editLine, [])
  expect(Buffer.from(edited).toString()).toBe(line)
})
