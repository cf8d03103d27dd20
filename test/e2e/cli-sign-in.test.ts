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

/** What the issuer says to who would renew a sign-in. */
async function refresh(refreshToken: string): Promise<unknown> {
  const asked = { grant_type: 'refresh_token', client_id: issuer.clientId, refresh_token: refreshToken }
  const response = await fetch(`${issuer.url}/token`, {
    method: 'POST',
    body: new URLSearchParams(asked),
  })
  return await response.json()
}

describe('login', () => {
  test('shows a page and a code, and ends with who one is', async () => {
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
    expect(fixture.asked.at(-1)).toEqual({ what: 'GET /api/whoami', authorization: `Bearer ${bearer}` })
  })

  test('finds the endpoints in the metadata of the issuer, and prints JSON', async () => {
    fixture.answers['GET /api/auth'] = () =>
      fixture.auth({ endpoints: {}, requestParameters: { resource: issuer.audience } })
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
      tokenEndpoint: `${issuer.url}/token`,
      resource: issuer.audience,
    })
    fixture.expire()
    expect((await fixture.cli('whoami')).stdout.toString()).toBe('Bob Baker\n')
  }, 30_000)

  test('ends the sign-in that it replaces, at the server and at the issuer', async () => {
    await fixture.login()
    const { bearer, renewal } = fixture.stored
    await fixture.login()
    expect(fixture.stored.bearer).not.toBe(bearer)
    expect(fixture.asked.filter(({ what }) => what === 'POST /api/signout')).toEqual([
      { what: 'POST /api/signout', authorization: `Bearer ${bearer}` },
    ])
    expect(await refresh(renewal.refreshToken)).toMatchObject({ error: 'invalid_grant' })
    expect(await refresh(fixture.stored.renewal.refreshToken)).toHaveProperty('access_token')
  }, 30_000)

  test('says in one line who could not be told of the sign-in that it replaces', async () => {
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
  }, 30_000)

  test('ends when it is declined', async () => {
    const { code, done } = await fixture.beginLogin()
    await issuer.refuseDevice(code)
    const run = await done()
    expect(run.stderr).toContain('sbx-stdio: Cannot sign in: the request was declined\nhint: sign in again: ')
    expect(run.code).toBe(255)
    expect(fixture.isSignedIn).toBe(false)
  })

  test('is stopped by Ctrl-C, and leaves nothing behind', async () => {
    const { interrupt, done } = await fixture.beginLogin()
    interrupt()
    const run = await done()
    expect(run.code).toBe(130)
    expect(run.stderr).toEndWith('canceled; you are not signed in\n')
    expect(fixture.isSignedIn).toBe(false)
  })

  test('stores nothing that the server does not accept', async () => {
    fixture.answers['GET /api/whoami'] = () =>
      Response.json({ error: { code: 'unauthorized', message: 'wrong audience' } }, { status: 401 })
    const { code, done } = await fixture.beginLogin()
    await issuer.approveDevice(code, 'ann')
    const run = await done()
    expect(run.stderr).toContain('the server refused the token: wrong audience')
    expect(run.stderr).toContain('hint: ask the operator of the server to check the audience and scopes')
    expect(fixture.isSignedIn).toBe(false)
  })

  test('says when to try again where the account was just deleted', async () => {
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

  test('says what to ask the operator for when the issuer gives a token that only it can read', async () => {
    fixture.answers['GET /api/auth'] = () => fixture.auth({ issuer: opaque.url.origin, endpoints: {} })
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
  })

  test('says so when the server has no issuer, or several', async () => {
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
  test('tells the server and the issuer, and forgets', async () => {
    await fixture.login()
    const { bearer, renewal } = fixture.stored
    const run = await fixture.cli('logout', fixture.url)
    expect(run).toMatchObject({
      code: 0,
      stderr: `sbx-stdio: Signed out of 127.0.0.1:${fixture.server.port}\n`,
    })
    expect(fixture.asked.at(-1)).toEqual({ what: 'POST /api/signout', authorization: `Bearer ${bearer}` })
    expect(fixture.isSignedIn).toBe(false)
    expect(await refresh(renewal.refreshToken)).toMatchObject({ error: 'invalid_grant' })
    expect((await fixture.cli('logout', fixture.url)).stderr).toContain('not signed in')
  })

  test('forgets although nobody can be told, and says so', async () => {
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
