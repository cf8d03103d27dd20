import { expect, test } from 'bun:test'
import { rejectionOf } from './rejection.ts'

test('rejectionOf returns the error of a promise that rejects', async () => {
  const error = new Error('no')
  expect(await rejectionOf(Promise.reject(error))).toBe(error)
})

test('rejectionOf throws for a promise that fulfills', async () => {
  const failure = await rejectionOf(rejectionOf(Promise.resolve(7)))
  expect(failure.message).toBe('Expected a rejection: promise fulfilled with "7"')
})
