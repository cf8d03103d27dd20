import { expect, spyOn, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { retry } from './transfer.ts'
import { InterruptedError } from '../errors/errors.ts'

const passing = (): SandwireError => new SandwireError('link_lost', 'cut', { retryAfterMs: 0 })
const { signal } = new AbortController()

test('retries transient errors as long as there is progress', async () => {
  let moved = 0
  const action = async (): Promise<string> => {
    moved += 1
    if (moved < 50) throw passing()
    return 'done'
  }
  expect(await retry(action, { signal, progress: () => moved })).toBe('done')
})

test('gives up after several attempts without progress', async () => {
  let attempts = 0
  const action = async (): Promise<never> => {
    attempts += 1
    throw passing()
  }
  expect(await retry(action, { signal, progress: () => 0 }).catch((error: unknown) => error)).toMatchObject({
    code: 'link_lost',
  })
  expect(attempts).toBe(10)
})

test('does not retry permanent errors', async () => {
  let attempts = 0
  for (const code of ['file_not_found', 'disk_full', 'internal', 'sandbox_stopped'] as const) {
    const action = async (): Promise<never> => {
      attempts += 1
      throw new SandwireError(code, 'no')
    }
    expect(await retry(action, { signal, progress: () => 0 }).catch((error: unknown) => error)).toMatchObject(
      { code },
    )
  }
  expect(attempts).toBe(4)
})

test('an interrupt ends the pause', async () => {
  const interruption = new AbortController()
  const action = async (): Promise<never> => {
    queueMicrotask(() => interruption.abort('SIGTERM'))
    throw new SandwireError('link_lost', 'cut', { retryAfterMs: 60_000 })
  }
  const error: unknown = await retry(action, { signal: interruption.signal, progress: () => 0 }).catch(
    (caught: unknown) => caught,
  )
  expect(error).toBeInstanceOf(InterruptedError)
  expect(error).toMatchObject({ signal: 'SIGTERM' })
})

test('leaves no listener on the signal after a pause', async () => {
  const { signal: watched } = new AbortController()
  const added = spyOn(watched, 'addEventListener')
  const removed = spyOn(watched, 'removeEventListener')
  let attempts = 0
  const action = async (): Promise<void> => {
    attempts += 1
    if (attempts < 4) throw passing()
  }
  await retry(action, { signal: watched, progress: () => 0 })
  expect(attempts).toBe(4)
  expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
    added.mock.calls.map(([, listener]) => listener),
  )
})
