import { expect, test } from 'bun:test'
import { findDuplicateKey } from '../src/http/request-body.ts'

test.each([
  ['{"a":1,"a":2}', 'a'],
  ['{"a":1,"\\u0061":2}', 'a'],
  ['{"a":{"b":1 , "b"\n:2}}', 'b'],
  ['[{"a":1},{"a":1,"c":[],"a":1}]', 'a'],
  ['{"__proto__":1,"__proto__":2}', '__proto__'],
  ['{"":1,"":2}', ''],
])('findDuplicateKey finds a duplicate in %s', (text, key) => {
  expect(findDuplicateKey(text)).toBe(key)
})

test.each([
  '{}',
  '"a"',
  '5',
  '{"a":"a","b":["a","a"]}',
  '{"a":{"a":{"a":1}},"b":{"a":1}}',
  '[{"a":1},{"a":1}]',
  '{"a":"\\"a\\":1,\\"a\\":2","b":"{\\"a\\":"}',
  '{"a\\\\":1,"a":2}',
])('findDuplicateKey finds no duplicate in %s', (text) => {
  expect(findDuplicateKey(text)).toBeUndefined()
})
