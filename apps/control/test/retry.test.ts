import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { MAX_ATTEMPTS, retryIdempotent } from '../src/providers/retry.ts'

function failing(times: number): { readonly run: () => Promise<string>; readonly waits: number[] } {
  let left = times
  const waits: number[] = []
  return {
    waits,
    run: async () => {
      if (left-- > 0) throw new Error('away')
      return 'done'
    },
  }
}

const options = (waits: number[], isWorthRetrying = true) => ({
  isWorthRetrying: () => isWorthRetrying,
  sleep: async (ms: number) => void waits.push(ms),
  random: () => 1,
})

test('a call is retried until it succeeds', async () => {
  const { run, waits } = failing(MAX_ATTEMPTS - 1)
  expect(await retryIdempotent(run, options(waits))).toBe('done')
  expect(waits).toEqual([60, 120])
})

test('a call fails after the last attempt', async () => {
  const { run, waits } = failing(MAX_ATTEMPTS)
  expect(await rejectionOf(retryIdempotent(run, options(waits)))).toMatchObject({ message: 'away' })
})

test('a call that got a response is not retried', async () => {
  const { run, waits } = failing(1)
  expect(await rejectionOf(retryIdempotent(run, options(waits, false)))).toMatchObject({ message: 'away' })
  expect(waits).toEqual([])
})
