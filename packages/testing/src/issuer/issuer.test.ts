import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startIssuer, type TestIssuer } from './index.ts'

const CALLBACK = 'http://127.0.0.1:4100/callback'

let issuer: TestIssuer
beforeAll(async () => void (issuer = await startIssuer()))
afterAll(() => issuer[Symbol.asyncDispose]())

type TokenResponse = Record<string, string>

async function post(
  path: string,
  form: Record<string, string>,
): Promise<{ status: number; body: TokenResponse }> {
  const response = await fetch(issuer.url + path, { method: 'POST', body: new URLSearchParams(form) })
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as TokenResponse) }
}

function claimsOf(token: string | undefined): Record<string, unknown> {
  return JSON.parse(Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString()) as Record<
    string,
    unknown
  >
}

const verifier = 'v'.repeat(43)

async function authorizationUrl(changes: Record<string, string> = {}): Promise<URL> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const url = new URL('/auth', issuer.url)
  url.search = new URLSearchParams({
    client_id: issuer.clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid profile email offline_access sandbox:connect sandbox:exec',
    resource: issuer.audience,
    state: 'state-1',
    nonce: 'nonce-1',
    code_challenge: Buffer.from(digest).toString('base64url'),
    code_challenge_method: 'S256',
    prompt: 'consent',
    ...changes,
  }).toString()
  return url
}

test('the issuer signs a user in with a code and PKCE, and issues a token for the audience', async () => {
  const back = await issuer.signIn(await authorizationUrl(), 'ann')
  expect(back.origin + back.pathname).toBe(CALLBACK)
  expect(back.searchParams.get('iss')).toBe(issuer.url)
  const exchange = {
    grant_type: 'authorization_code',
    client_id: issuer.clientId,
    redirect_uri: CALLBACK,
    code: back.searchParams.get('code') ?? '',
    code_verifier: verifier,
  }
  const { status, body } = await post('/token', exchange)
  expect(status).toBe(200)
  expect(claimsOf(body['access_token'])).toMatchObject({
    iss: issuer.url,
    sub: 'ann',
    aud: issuer.audience,
    scope: 'sandbox:connect sandbox:exec',
    name: 'Ann Archer',
  })
  expect(claimsOf(body['id_token'])).toMatchObject({ sub: 'ann', nonce: 'nonce-1', name: 'Ann Archer' })

  const refresh = { grant_type: 'refresh_token', client_id: issuer.clientId }
  const first = await post('/token', { ...refresh, refresh_token: body['refresh_token'] ?? '' })
  expect(first.status).toBe(200)
  expect(first.body['refresh_token']).not.toBe(body['refresh_token'])
  expect(claimsOf(first.body['access_token'])).toMatchObject({ aud: issuer.audience })
  await post('/token/revocation', { client_id: issuer.clientId, token: first.body['refresh_token'] ?? '' })
  const last = await post('/token', { ...refresh, refresh_token: first.body['refresh_token'] ?? '' })
  expect(last.body['error']).toBe('invalid_grant')
})

test('the issuer requires PKCE, and reports a refusal by the user', async () => {
  const bare = await authorizationUrl()
  bare.searchParams.delete('code_challenge')
  bare.searchParams.delete('code_challenge_method')
  expect((await issuer.signIn(bare, 'ann')).searchParams.get('error')).toBe('invalid_request')
  expect((await issuer.refuse(await authorizationUrl())).searchParams.get('error')).toBe('access_denied')
})

test('the issuer lets a user approve a device, until the user is revoked', async () => {
  const scope = 'openid profile offline_access sandbox:connect'
  const asked = await post('/device/auth', { client_id: issuer.clientId, scope, resource: issuer.audience })
  const poll = {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    client_id: issuer.clientId,
    device_code: asked.body['device_code'] ?? '',
  }
  expect((await post('/token', poll)).body['error']).toBe('authorization_pending')
  await issuer.approveDevice(asked.body['user_code'] ?? '', 'bob')
  const { body } = await post('/token', poll)
  expect(claimsOf(body['access_token'])).toMatchObject({
    sub: 'bob',
    aud: issuer.audience,
    scope: 'sandbox:connect',
  })
  await issuer.revokeUser('bob')
  const refresh = {
    grant_type: 'refresh_token',
    client_id: issuer.clientId,
    refresh_token: body['refresh_token'] ?? '',
  }
  expect((await post('/token', refresh)).body['error']).toBe('invalid_grant')
})

test('a strict issuer issues a token for the audience only when every request names the resource', async () => {
  await using strict = await startIssuer({ isStrict: true })
  const ask = async (path: string, form: Record<string, string>): Promise<TokenResponse> => {
    const response = await fetch(strict.url + path, { method: 'POST', body: new URLSearchParams(form) })
    return (await response.json()) as TokenResponse
  }
  const tokens = async (scope: string, more: Record<string, string>): Promise<TokenResponse> => {
    const begin = { client_id: strict.clientId, scope, resource: strict.audience }
    const asked = await ask('/device/auth', begin)
    await strict.approveDevice(asked['user_code'] ?? '', 'bob')
    const poll = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: strict.clientId }
    return ask('/token', { ...poll, device_code: asked['device_code'] ?? '', ...more })
  }
  const opaque = await tokens('openid offline_access sandbox:connect', {})
  expect(opaque['access_token']?.split('.')).toHaveLength(1)
  const resource = { resource: strict.audience }
  const ours = await tokens('openid offline_access sandbox:connect', resource)
  expect(claimsOf(ours['access_token'])).toMatchObject({ aud: strict.audience, scope: 'sandbox:connect' })
  expect(ours['refresh_token']).toBeString()
  expect((await tokens('openid sandbox:connect', resource))['refresh_token']).toBeUndefined()
})

test('the issuer denies a device that the user refuses', async () => {
  const asked = await post('/device/auth', {
    client_id: issuer.clientId,
    scope: 'openid',
    resource: issuer.audience,
  })
  await issuer.refuseDevice(asked.body['user_code'] ?? '')
  const poll = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: issuer.clientId }
  const { body } = await post('/token', { ...poll, device_code: asked.body['device_code'] ?? '' })
  expect(body['error']).toBe('access_denied')
})

test('the issuer mints tokens with given scopes, lifetime and claims', async () => {
  const token = await issuer.mintToken('ann', {
    scopes: ['sandbox:connect'],
    expiresInSeconds: -5,
    claims: { extra: 1 },
  })
  const claims = claimsOf(token)
  expect(claims).toMatchObject({ sub: 'ann', scope: 'sandbox:connect', aud: issuer.audience, extra: 1 })
  expect(Number(claims['exp'])).toBeLessThan(Number(claims['iat']))
})
