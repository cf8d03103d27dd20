import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { signInEnded } from '../../apps/control/src/auth/identity.ts'
import { follow } from './cli-runner.ts'
import { SignInFixture, waitForUserCode } from './support/sign-in-fixture.ts'

let issuer: TestIssuer
let fixture: SignInFixture
beforeAll(async () => void (issuer = await startIssuer()))
afterAll(() => issuer[Symbol.asyncDispose]())
beforeEach(() => void (fixture = new SignInFixture(issuer)))
afterEach(() => fixture[Symbol.asyncDispose]())

/** The response of the issuer to a refresh request. */
async function refresh(refreshToken: string): Promise<unknown> {
  const requests = { grant_type: 'refresh_token', client_id: issuer.clientId, refresh_token: refreshToken }
  const response = await fetch(`${issuer.url}/token`, {
    method: 'POST',
    body: new URLSearchParams(requests),
  })
  return await response.json()
}

describe('login', () => {
  test('prints a page and a code, and ends with the account name', async () => {
    const child = fixture.start('login', fixture.url)
    const { output, done } = follow(child)
    const code = await waitForUserCode(output)
    expect(output()).toContain(`Open        ${issuer.url}/device\n`)
    expect(output()).toContain(`Or open     ${issuer.url}/device?user_code=${code}\n`)
    expect(fixture.isSignedIn).toBe(false)
    const { pid } = child
    const inProc = readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'utf8')
    await issuer.approveDevice(code, 'ann')
    const run = await done
    expect(run.code).toBe(0)
    expect(run.stderr).toEndWith(`sbx-stdio: Signed in to 127.0.0.1:${fixture.server.port} as Ann Archer\n`)
    const { bearer, renewal } = fixture.stored
    expect(run.stderr + run.stdout.toString() + inProc).not.toContain(bearer.slice(-40))
    expect(run.stderr + run.stdout.toString() + inProc).not.toContain(renewal.refreshToken)
    expect(statSync(fixture.storedFile).mode & 0o777).toBe(0o600)
    expect(statSync(fixture.folder).mode & 0o777).toBe(0o700)
    const who = await fixture.cli('whoami')
    expect(who).toMatchObject({ code: 0 })
    expect(who.stdout.toString()).toBe('Ann Archer\n')
    expect(fixture.requests.at(-1)).toEqual({ what: 'GET /api/whoami', authorization: `Bearer ${bearer}` })
  })

  test('finds the endpoints in the metadata of the issuer, and prints JSON', async () => {
    fixture.answers['GET /api/auth'] = () =>
      fixture.auth({ requestParameters: { resource: issuer.audience } })
    const { code, done } = await fixture.beginLogin('--json')
    await issuer.approveDevice(code, 'bob')
    const run = await done()
    expect(JSON.parse(run.stdout.toString())).toEqual({
      server: fixture.url,
      origin: fixture.url,
      name: 'Bob Baker',
      issuer: 'test',
    })
    const { tokenEndpoint, resource } = fixture.stored.renewal
    expect({ tokenEndpoint, resource }).toEqual({
      tokenEndpoint: `${fixture.relay.url}/token`,
      resource: issuer.audience,
    })
    fixture.expire()
    expect((await fixture.cli('whoami')).stdout.toString()).toBe('Bob Baker\n')
  })

  test('revokes the replaced sign-in at the server and at the issuer', async () => {
    await fixture.login()
    const { bearer, renewal } = fixture.stored
    await fixture.login()
    expect(fixture.stored.bearer).not.toBe(bearer)
    expect(fixture.requests.filter(({ what }) => what === 'POST /api/signout')).toEqual([
      { what: 'POST /api/signout', authorization: `Bearer ${bearer}` },
    ])
    expect(await refresh(renewal.refreshToken)).toMatchObject({ error: 'invalid_grant' })
    expect(await refresh(fixture.stored.renewal.refreshToken)).toHaveProperty('access_token')
  })

  test('reports in one line that the replaced sign-in could not be revoked', async () => {
    await fixture.login()
    fixture.answers['POST /api/signout'] = () => new Response('broken', { status: 500 })
    const { code, done } = await fixture.beginLogin()
    await issuer.approveDevice(code, 'bob')
    const run = await done()
    expect(run.code).toBe(0)
    expect(run.stderr).toMatch(
      /^sbx-stdio: the earlier sign-in may still be valid: the server could not be notified: .+$/m,
    )
    expect((await fixture.cli('whoami')).stdout.toString()).toBe('Bob Baker\n')
  })

  test('fails when the user declines', async () => {
    const { code, done } = await fixture.beginLogin()
    await issuer.refuseDevice(code)
    const run = await done()
    expect(run.stderr).toContain('sbx-stdio: Cannot sign in: the request was declined\nhint: sign in again: ')
    expect(run.code).toBe(255)
    expect(fixture.isSignedIn).toBe(false)
  })

  test('is canceled by Ctrl-C, and stores nothing', async () => {
    const { interrupt, done } = await fixture.beginLogin()
    interrupt()
    const run = await done()
    expect(run.code).toBe(130)
    expect(run.stderr).toEndWith('canceled; you are not signed in\n')
    expect(fixture.isSignedIn).toBe(false)
  })

  test('stores no token that the server does not accept', async () => {
    fixture.answers['GET /api/whoami'] = () =>
      Response.json({ error: { code: 'unauthorized', message: 'wrong audience' } }, { status: 401 })
    const { code, done } = await fixture.beginLogin()
    await issuer.approveDevice(code, 'ann')
    const run = await done()
    expect(run.stderr).toContain('the server refused the token: wrong audience')
    expect(run.stderr).toContain('hint: ask the operator of the server to check the audience and scopes')
    expect(fixture.isSignedIn).toBe(false)
  })

  test('hints to retry after the account was just deleted', async () => {
    const { code: error, details, message } = signInEnded()
    fixture.answers['GET /api/whoami'] = () =>
      Response.json({ error: { code: error, message, ...details } }, { status: 401 })
    const { code, done } = await fixture.beginLogin()
    await issuer.approveDevice(code, 'ann')
    const run = await done()
    expect(run.stderr).toEndWith(
      'Cannot sign in: the account was just deleted or signed out\nhint: try again in a minute\n',
    )
    expect(run.code).toBe(255)
    expect(fixture.isSignedIn).toBe(false)
  })

  test('hints at the issuer settings for an opaque token', async () => {
    fixture.answers['GET /api/auth'] = () => fixture.auth({ issuer: opaque.url.origin })
    using opaque = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        const { origin, pathname } = new URL(request.url)
        if (pathname === '/device')
          return Response.json({
            device_code: 'd',
            user_code: 'CODE',
            verification_uri: `${origin}/page`,
            expires_in: 600,
            interval: 1,
          })
        if (pathname === '/token')
          return Response.json({ access_token: 'opaque', token_type: 'bearer', expires_in: 600 })
        return Response.json({
          issuer: origin,
          token_endpoint: `${origin}/token`,
          device_authorization_endpoint: `${origin}/device`,
        })
      },
    })
    fixture.answers['GET /api/whoami'] = () =>
      Response.json({ error: { code: 'unauthorized', message: 'not accepted' } }, { status: 401 })
    const run = await fixture.cli('login', fixture.url)
    expect(run.stderr).toContain('Cannot sign in: the issuer gave a token that the server cannot read')
    expect(run.stderr).toContain('hint: the operator has to set')
    expect(run.stderr).toContain('"resource" or "bearer": "id_token" in the issuer settings')
    expect(run.code).toBe(255)
    expect(fixture.isSignedIn).toBe(false)
    // It may be valid elsewhere.
    expect(fixture.requests.map(({ what }) => what)).toEqual(['GET /api/auth'])
  })

  test('fails when the server has no issuer, or several', async () => {
    fixture.answers['GET /api/auth'] = () => Response.json({ mode: 'local', local: true, issuers: [] })
    expect((await fixture.cli('login', fixture.url)).stderr).toContain('the server has no issuer')
    const { id: _, ...rest } = ((await fixture.auth().json()) as { issuers: [Record<string, unknown>] })
      .issuers[0]
    fixture.answers['GET /api/auth'] = () =>
      Response.json({
        issuers: [
          { ...rest, id: 'one' },
          { ...rest, id: 'two' },
        ],
      })
    const several = await fixture.cli('login', fixture.url)
    expect(several.stderr).toContain(
      'The server has several issuers: one, two\nhint: choose one with --issuer one',
    )
    expect(several.code).toBe(2)
  })
})

describe('logout', () => {
  test('revokes at the server and the issuer, and removes the sign-in', async () => {
    await fixture.login()
    const { bearer, renewal } = fixture.stored
    const run = await fixture.cli('logout', fixture.url)
    expect(run).toMatchObject({
      code: 0,
      stderr: `sbx-stdio: Signed out of 127.0.0.1:${fixture.server.port}\n`,
    })
    expect(fixture.requests.at(-1)).toEqual({ what: 'POST /api/signout', authorization: `Bearer ${bearer}` })
    expect(fixture.isSignedIn).toBe(false)
    expect(await refresh(renewal.refreshToken)).toMatchObject({ error: 'invalid_grant' })
    expect((await fixture.cli('logout', fixture.url)).stderr).toContain('not signed in')
  })

  test('removes the sign-in although the server and the issuer are unreachable', async () => {
    await fixture.login()
    await fixture.server.stop(true)
    fixture.relay.close()
    const run = await fixture.cli('logout')
    expect(run.code).toBe(0)
    expect(run.stderr).toContain('Signed out of')
    expect(run.stderr).toContain('the server could not be notified')
    const relay = new URL(fixture.relay.url).host
    expect(run.stderr).toContain(`the issuer could not be notified: Cannot reach the issuer ${relay}`)
    expect(fixture.isSignedIn).toBe(false)
  })
})
