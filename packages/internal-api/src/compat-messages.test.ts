import { expect, test } from 'bun:test'
import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { compatClose, compatCloseOfError } from './compat-messages.ts'

test.each<[ErrorCode, number]>([
  ['session_ended', 4002],
  ['bad_request', 4004],
  ['too_many_sessions', 4004],
  ['rate_limited', 4005],
  ['sandbox_unreachable', 4006],
  ['shutting_down', 4006],
  ['silent', 4007],
  ['forbidden', 4008],
  ['reauthorise', 4008],
])('%s is said in an error and closes with %d', (code, close) => {
  expect(compatClose({ code, message: 'Cannot' })).toEqual({
    last: { type: 'error', data: 'Cannot' },
    code: close,
    reason: code,
  })
})

test.each<ErrorCode>(['session_not_found', 'session_gone', 'resume_lost'])(
  '%s is one answer with all that is missing',
  (code) => {
    expect(compatClose({ code, message: `because of ${code}` })).toEqual({
      last: { type: 'session_not_found' },
      code: 4001,
      reason: 'session_not_found',
    })
  },
)

test('the close reason names an unknown provider, truncated to the limit of a close frame', () => {
  const message = `Unknown provider: xy. Available: [${'ü'.repeat(100)}]`
  const { last, code, reason } = compatClose({ code: 'bad_template', message })
  expect({ last, code }).toEqual({ last: { type: 'error', data: message }, code: 4003 })
  expect(message).toStartWith(reason)
  expect(Buffer.byteLength(reason)).toBe(122)
})

test('the message of a rate limit states how long to wait', () => {
  const { last } = compatCloseOfError(new SandwireError('rate_limited', 'Cannot', { retryAfterMs: 2_500 }))
  expect(last).toEqual({ type: 'error', data: 'Cannot: try again in 3 s' })
})
