import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { raceTimeout, withTimeout } from './with-timeout.ts'

const never = new Promise<string>(() => undefined)

test('raceTimeout resolves to the value of the work', async () => {
  expect(await raceTimeout(Promise.resolve('value'), 60_000, 'late')).toBe('value')
})

test('raceTimeout resolves to the fallback when the work is late', async () => {
  expect(await raceTimeout(never, 1, 'late')).toBe('late')
})

test('withTimeout passes on the error of the work', async () => {
  const failed = Promise.reject(new Error('failed'))
  expect(await rejectionOf(withTimeout(failed, 60_000, () => new Error('late')))).toEqual(new Error('failed'))
})

test('withTimeout rejects with the given error when the work is late', async () => {
  expect(await rejectionOf(withTimeout(never, 1, () => new Error('late')))).toEqual(new Error('late'))
})
