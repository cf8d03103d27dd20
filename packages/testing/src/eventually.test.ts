import { expect, test } from 'bun:test'
import { eventually } from './eventually.ts'
import { rejectionOf } from './rejection.ts'

test('eventually returns the first result that is not false, null or undefined', async () => {
  const answers = [undefined, null, false, 0]
  expect(await eventually(() => answers.shift(), { what: 'an answer' })).toBe(0)
})

test('eventually retries after an error', async () => {
  let calls = 0
  const check = async () => {
    if (++calls < 3) throw new Error('not yet')
    return calls
  }
  expect(await eventually(check, { what: 'the third call' })).toBe(3)
})

test('eventually reports what it waited for, how long and the last result', async () => {
  const waiting = eventually(() => false, { what: 'the event', timeoutMs: 20 })
  expect((await rejectionOf(waiting)).message).toContain(
    'Timed out after 20 ms waiting for the event: last result was "false"',
  )
})

test('eventually reports the last error as the cause', async () => {
  const cause = new Error('no such session')
  const failure = await eventually(
    () => {
      throw cause
    },
    { what: 'the session', timeoutMs: 1 },
  ).catch((error: unknown) => error)
  expect(failure).toMatchObject({
    message: expect.stringContaining('last error was "no such session"'),
    cause,
  })
})
