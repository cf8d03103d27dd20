import { describe, expect, test } from 'bun:test'
import { DevicePolling, isPageOf, validatePrompt } from './device-sign-in.ts'

const ANSWER = {
  device_code: 'd',
  user_code: 'ABCD-EFGH',
  verification_uri: 'https://login.example/device',
  expires_in: 600,
}
const ISSUER = 'https://login.example'
const TOKENS = { accessToken: 'a', idToken: undefined, refreshToken: 'r', expiresInSeconds: 60 }
const refused = (error: string) => ({ kind: 'refused', error }) as const

describe('validatePrompt', () => {
  test('returns the address, the code and the complete address', () => {
    const complete = 'https://login.example/device?user_code=ABCD-EFGH'
    expect(validatePrompt({ ...ANSWER, verification_uri_complete: complete }, ISSUER)).toEqual({
      address: 'https://login.example/device',
      code: 'ABCD-EFGH',
      completeAddress: complete,
    })
  })

  test('makes text of a hostile issuer safe to print', () => {
    const prompt = validatePrompt(
      {
        ...ANSWER,
        user_code: `A\x1b]52;c;ZXZpbA==\x07B\u202e${'x'.repeat(1000)}`,
        verification_uri: 'https://login.example/\x1b[2J\r\nfake',
        verification_uri_complete: 'javascript:alert(1)',
      },
      ISSUER,
    )
    expect(prompt.code).toMatch(/^A \]52;c;ZXZpbA== B x{1,64}$/)
    expect(prompt.code.length).toBeLessThanOrEqual(64)
    expect(prompt.address).toBe('https://login.example/%1B[2Jfake')
    expect(prompt.completeAddress).toBeUndefined()
  })

  test.each(['javascript:alert(1)', 'file:///etc/passwd', '', 'http://127.0.0.1:8080/admin/restart'])(
    'refuses the page %j',
    (verification_uri) => {
      expect(() => validatePrompt({ ...ANSWER, verification_uri }, ISSUER)).toThrow('no valid web page')
    },
  )
})

test.each([
  ['https://login.example/device?user_code=A', ISSUER, true],
  ['https://login.example:8443/device', ISSUER, false],
  ['http://login.example/device', ISSUER, false],
  ['https://login.example.evil.example/device', ISSUER, false],
  ['https://microsoft.com/devicelogin', 'https://login.microsoftonline.com/t/v2.0', true],
  ['https://microsoft.com/devicelogin', ISSUER, false],
])('the page %s of %s: %j (threat T2)', (page, issuer, isIts) => {
  expect(isPageOf(page, issuer)).toBe(isIts)
})

describe('DevicePolling', () => {
  test('polls at the interval while the authorization is pending', () => {
    const polling = new DevicePolling({ expires_in: 600, interval: 7 }, 0)
    expect(polling.intervalSeconds).toBe(7)
    expect(polling.receive(refused('authorization_pending'), 7_000)).toEqual({ do: 'wait', seconds: 7 })
    expect(polling.receive({ kind: 'signedIn', tokens: TOKENS }, 14_000)).toEqual({
      do: 'finish',
      tokens: TOKENS,
    })
  })

  test('polls less often after slow_down and while the issuer is unreachable', () => {
    const polling = new DevicePolling({ expires_in: 600 }, 0)
    expect(polling.receive(refused('slow_down'), 0)).toEqual({ do: 'wait', seconds: 10 })
    expect(polling.receive(refused('authorization_pending'), 0)).toEqual({ do: 'wait', seconds: 10 })
    expect(polling.receive({ kind: 'unreachable' }, 0)).toEqual({ do: 'wait', seconds: 15 })
  })

  test.each([
    ['access_denied', 'declined'],
    ['expired_token', 'the code has expired'],
    ['invalid_client\x1b[2J', 'the issuer returned invalid_client'],
  ])('ends with %j', (error, message) => {
    const step = new DevicePolling({ expires_in: 600 }, 0).receive(refused(error), 0)
    expect(step.do === 'fail' ? step.error.message : '').toContain(message)
    expect(step.do === 'fail' ? step.error.message : '').not.toContain('\x1b')
  })

  test('fails when the code has expired', () => {
    const polling = new DevicePolling({ expires_in: 20, interval: 5 }, 0)
    expect(polling.receive(refused('authorization_pending'), 10_000).do).toBe('wait')
    expect(polling.receive(refused('authorization_pending'), 16_000).do).toBe('fail')
  })

  test.each([
    [{ expires_in: 1e12, interval: 0 }, 1],
    [{ expires_in: 1e12, interval: 1e12 }, 60],
  ])('stays within bounds for %j', (answer, seconds) => {
    const polling = new DevicePolling(answer, 0)
    expect(polling.intervalSeconds).toBe(seconds)
    expect(polling.receive(refused('authorization_pending'), 31 * 60_000).do).toBe('fail')
  })
})
