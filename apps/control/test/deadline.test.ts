import { describe, expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { withDeadline } from '../src/http/deadline.ts'
import { readBounded, readBoundedBytes, readBoundedJson } from '../src/http/read-bounded.ts'

/** A deadline that passes immediately. */
const NOW = { ms: 1, late: () => new Error('late') }
/** A deadline that never passes. */
const LONG = { ms: 60_000, late: () => new Error('late') }

/** A response whose body the test controls. */
function answer(...texts: readonly string[]) {
  const encoder = new TextEncoder()
  const { promise: isCanceled, resolve } = Promise.withResolvers<unknown>()
  let writer: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      writer = controller
      for (const text of texts) controller.enqueue(encoder.encode(text))
    },
    cancel: resolve,
  })
  return {
    response: new Response(body),
    isCanceled,
    end: () => writer?.close(),
    breakOff: () => writer?.error(new Error('gone')),
  }
}

describe('a deadline', () => {
  test('returns a result that is in time', async () => {
    let ending: AbortSignal | undefined
    const done = withDeadline(LONG, async (signal) => {
      ending = signal
      return 'done'
    })
    expect(await done).toBe('done')
    expect(ending?.aborted).toBe(false)
  })

  test('passes on an error that is in time', async () => {
    expect(await rejectionOf(withDeadline(LONG, () => Promise.reject(new Error('broken'))))).toMatchObject({
      message: 'broken',
    })
  })

  test('aborts with a reason when the time is over, and does not wait further', async () => {
    let ending: AbortSignal | undefined
    const never = withDeadline(NOW, (signal) => {
      ending = signal
      return new Promise<never>(() => undefined)
    })
    const error = await rejectionOf(never)
    expect(error?.message).toBe('late')
    expect(ending?.reason).toBe(error)
  })

  test.each([
    ['bytes', readBoundedBytes],
    ['text', readBounded],
    ['JSON', readBoundedJson],
  ] as const)('cancels a response in %s that does not end', async (_, read) => {
    const made = answer('{"some": ')
    const error = await rejectionOf(withDeadline(NOW, (signal) => read(made.response, 1_000, signal)))
    expect(error?.message).toBe('late')
    expect(await made.isCanceled).toBe(error)
  })

  test('cancels a response that begins after the deadline', async () => {
    const made = answer('late')
    const reason = new Error('late')
    const reading = readBounded(made.response, 1_000, AbortSignal.abort(reason))
    expect(await rejectionOf(reading)).toBe(reason)
    expect(await made.isCanceled).toBe(reason)
  })
})

describe('a body', () => {
  test('is read whole from several chunks', async () => {
    const made = answer('{"a"', ':1}')
    made.end()
    expect(await readBoundedJson(made.response, 7, AbortSignal.timeout(60_000))).toEqual({ a: 1 })
  })

  test('that is missing is empty', async () => {
    expect(await readBounded(new Response(null), 0)).toBe('')
  })

  test('is canceled when it is too large', async () => {
    const made = answer('1234', '5678')
    expect(await readBounded(made.response, 7)).toBeUndefined()
    await made.isCanceled
  })

  test('that breaks off is undefined', async () => {
    const made = answer('1234')
    const reading = readBounded(made.response, 7)
    made.breakOff()
    expect(await reading).toBeUndefined()
  })

  test('that is not JSON is undefined', async () => {
    expect(await readBoundedJson(new Response('{'), 7)).toBeUndefined()
  })
})
