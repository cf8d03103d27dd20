import { expect, test } from 'bun:test'
import { NulTokens } from './git-command.ts'

const STREAM = Buffer.from('one\0\0two words\0rest')

test.each([1, 2, 3, 5, 100])('splits at every NUL in slices of %d bytes', (size) => {
  const tokens = new NulTokens()
  const found: string[] = []
  for (let at = 0; at < STREAM.length; at += size) {
    tokens.push(STREAM.subarray(at, at + size))
    for (let token = tokens.next(); token !== undefined; token = tokens.next()) found.push(token.toString())
  }
  expect(found).toEqual(['one', '', 'two words'])
})

test('returns the bytes after the last token', () => {
  const tokens = new NulTokens()
  tokens.push(STREAM)
  expect(tokens.next()?.toString()).toBe('one')
  expect(tokens.rest().toString()).toBe('\0two words\0rest')
})

test('keeps the beginning of a token when the slice it came in is used again', () => {
  const tokens = new NulTokens()
  const slice = Buffer.from('ab')
  tokens.push(slice)
  expect(tokens.next()).toBeUndefined()
  slice.fill('x')
  tokens.push(Buffer.from('c\0'))
  expect(tokens.next()?.toString()).toBe('abc')
})
