import { expect, test } from 'bun:test'
import { decodeSessionKeys } from './session-keys.ts'

const key = (length: number): string => Buffer.alloc(length, 7).toString('base64')

test('decodeSessionKeys reads keys in order, in base64 and base64url', () => {
  const odd = Buffer.alloc(33, 0xfb)
  const keys = decodeSessionKeys(`new:${key(32)}, old:${odd.toString('base64url')}`)
  expect(keys.map(({ kid }) => kid)).toEqual(['new', 'old'])
  expect(Buffer.from(keys[1]?.bytes ?? []).equals(odd)).toBe(true)
})

test.each([
  ['', 'not spelled KID:BASE64'],
  [key(32), 'not spelled KID:BASE64'],
  [`a b:${key(32)}`, 'not spelled KID:BASE64'],
  [`a:${key(31)}`, 'less than 32 bytes'],
  [`a:${key(32)}=A=`, 'not base64'],
  [`a:${key(32)},a:${key(33)}`, 'two keys have one name'],
  [`a:${key(32)},`, 'key 2'],
  [Array.from({ length: 9 }, (_, at) => `k${at}:${key(32)}`).join(), 'more than 8 keys'],
])('decodeSessionKeys refuses invalid keys without repeating them (case %#)', (text, why) => {
  expect(() => decodeSessionKeys(text)).toThrow(why)
  expect(() => decodeSessionKeys(text)).toThrow(
    expect.not.objectContaining({ message: expect.stringContaining(key(24)) }),
  )
})
