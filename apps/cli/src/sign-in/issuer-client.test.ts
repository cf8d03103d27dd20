import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { findEndpoints, issuerFetch } from './issuer-client.ts'

let server: ReturnType<typeof Bun.serve>
let answer: () => Response
beforeEach(() => {
  server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => answer() })
})
afterEach(() => server.stop(true))
const at = (): string => `http://127.0.0.1:${server.port}`

test.each(['http://login.example/token', 'ftp://127.0.0.1/', 'https://u:p@127.0.0.1/', 'nonsense'])(
  'issuerFetch sends no request to %s (threat T2)',
  async (url) => expect((await rejectionOf(issuerFetch(url))).message).toContain('not https'),
)

test('issuerFetch follows no redirect', async () => {
  answer = () => Response.redirect(`${at()}/elsewhere`, 302)
  expect((await issuerFetch(at())).status).toBe(302)
})

test('issuerFetch limits the size of a response', async () => {
  answer = () =>
    new Response(
      new ReadableStream({
        pull: (controller) => {
          controller.enqueue(new Uint8Array(65_536))
        },
      }),
    )
  expect((await rejectionOf(issuerFetch(at()))).message).toContain('too long')
})

test('issuerFetch reports why a request failed, and rethrows an abort', async () => {
  const url = at()
  await server.stop(true)
  expect((await rejectionOf(issuerFetch(url))).message).toContain('Cannot reach the issuer 127.0.0.1:')
  const signal = AbortSignal.abort()
  expect(await rejectionOf(issuerFetch(url, { signal }))).toBe(signal.reason)
})

test('findEndpoints knows the endpoints of oauth.do, whose metadata has others', async () => {
  const info = {
    id: 'oauth-do',
    name: 'oauth.do',
    issuer: 'https://id.org.ai',
    clientId: 'cli',
    requestScopes: [],
    bearer: 'access_token',
  } as const
  const trust = { isTrusted: false, trustHint: '' }
  expect(await findEndpoints(info, trust, AbortSignal.timeout(1_000))).toMatchObject({
    issuer: 'https://id.org.ai',
    token: 'https://id.org.ai/oauth/token',
    deviceAuthorization: 'https://id.org.ai/oauth/device',
  })
})
