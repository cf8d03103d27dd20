import { describe, expect, test } from 'bun:test'
import { explainRefusal, parseCloseReason } from './refusal.ts'

const REQUEST = { url: new URL('wss://h/attach?cmd=x'), headers: { authorization: 'Bearer t' } }
const answer = (status: number, body: unknown) => () => Promise.resolve(Response.json(body, { status }))

describe('explainRefusal', () => {
  test('requests the same URL over HTTP with the same credential, and follows no redirect', async () => {
    const asked: [string, RequestInit][] = []
    await explainRefusal(REQUEST, (url, init) => {
      asked.push([url, init])
      return Promise.resolve(Response.json({}))
    })
    expect(asked).toMatchObject([
      ['https://h/attach?cmd=x', { headers: REQUEST.headers, redirect: 'manual' }],
    ])
  })

  test('returns code and message of an error response, without control characters', async () => {
    const body = { error: { code: 'host_refused', message: 'Not\x1b[2J here\n' } }
    expect(await explainRefusal(REQUEST, answer(421, body))).toEqual({
      code: 'host_refused',
      message: 'Not [2J here ',
    })
  })

  test('returns undefined for upgrade_required', async () => {
    expect(
      await explainRefusal(REQUEST, answer(426, { error: { code: 'upgrade_required' } })),
    ).toBeUndefined()
  })

  test.each([
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [429, 'rate_limited'],
    [502, 'internal'],
    [200, 'link_lost'],
    [301, 'link_lost'],
  ])('maps status %d of a proxy', async (status, code) => {
    const page = () => Promise.resolve(new Response('<html>', { status }))
    const reason = await explainRefusal(REQUEST, page)
    expect(reason).toMatchObject({ code, message: expect.stringContaining(String(status)) })
  })

  test.each([
    ['ECONNREFUSED', 'connection refused'],
    ['ENOTFOUND', 'no such host'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate is not trusted'],
    [undefined, 'no answer'],
  ])('describes a failed request: %s', async (code, text) => {
    const failing = () => Promise.reject(Object.assign(new TypeError('x'), { code }))
    expect(await explainRefusal(REQUEST, failing)).toMatchObject({
      code: 'link_lost',
      message: expect.stringContaining(text),
    })
  })
})

describe('explainRefusal in a page', () => {
  const failing = () => Promise.reject(new TypeError('Failed to fetch'))

  test('lists all possible causes for a server of another origin', async () => {
    expect(await explainRefusal(REQUEST, failing, 'http://localhost:5199')).toEqual({
      code: 'link_lost',
      message:
        'Cannot connect to https://h: the server does not respond, does not allow pages of http://localhost:5199, or did not accept the ticket',
    })
  })

  test('reports no answer for a server of the same origin', async () => {
    expect(await explainRefusal(REQUEST, failing, 'https://h')).toMatchObject({
      message: 'The server cannot be reached: no answer',
    })
  })
})

test('parseCloseReason accepts a reason only with its own close code', () => {
  expect(parseCloseReason(4410, 'session_gone')).toMatchObject({ code: 'session_gone' })
  expect(parseCloseReason(1000, 'session_gone')).toBeUndefined()
  expect(parseCloseReason(1006, '')).toBeUndefined()
})
