import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { eventually } from '@sandwire/testing'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { finish, MAIN, runCli } from './cli-runner.ts'
import { openReauthorizingProxy } from './support/reauthorizing-proxy.ts'
import { startSandboxd } from './support/sandboxd.ts'
import { SignInFixture } from './support/sign-in-fixture.ts'

let issuer: TestIssuer
let fixture: SignInFixture
beforeAll(async () => void (issuer = await startIssuer()))
afterAll(() => issuer[Symbol.asyncDispose]())
beforeEach(() => void (fixture = new SignInFixture(issuer)))
afterEach(() => fixture[Symbol.asyncDispose]())

describe('a stored sign-in', () => {
  test('is renewed before it expires, and stores the new refresh token', async () => {
    await fixture.login()
    const first = fixture.stored
    expect((await fixture.cli('whoami')).code).toBe(0)
    expect(fixture.relay.grants.filter((grant) => grant === 'refresh_token')).toEqual([])
    fixture.expire()
    expect((await fixture.cli('whoami')).stdout.toString()).toBe('Ann Archer\n')
    const second = fixture.stored
    expect(second.bearer).not.toBe(first.bearer)
    expect(second.renewal.refreshToken).not.toBe(first.renewal.refreshToken)
    expect(fixture.requests.at(-1)?.authorization).toBe(`Bearer ${second.bearer}`)
    expect(statSync(fixture.storedFile).mode & 0o777).toBe(0o600)
    fixture.expire()
    expect((await fixture.cli('whoami')).code).toBe(0)
  })

  test('is the ID token if the server needs it, and is renewed', async () => {
    fixture.answers['GET /api/auth'] = () => fixture.auth({ bearer: 'id_token' })
    await fixture.login()
    const first = fixture.stored
    const claims = JSON.parse(Buffer.from(first.bearer.split('.')[1] ?? '', 'base64url').toString()) as {
      aud: string
      exp: number
    }
    expect(claims.aud).toBe(issuer.clientId)
    expect(first.expiresMs).toBe(claims.exp * 1000)
    fixture.expire()
    expect((await fixture.cli('whoami')).stdout.toString()).toBe('Ann Archer\n')
    expect(fixture.stored.expiresMs).toBeGreaterThan(1)
    expect(fixture.stored.renewal.refreshToken).not.toBe(first.renewal.refreshToken)
  })

  test('is renewed once by concurrent processes', async () => {
    await fixture.login()
    fixture.expire()
    const runs = await Promise.all(Array.from({ length: 6 }, () => finish(fixture.start('whoami'))))
    expect(runs.map((run) => run.stderr + String(run.code)).filter((text) => !text.endsWith('0'))).toEqual([])
    expect(fixture.relay.grants.filter((grant) => grant === 'refresh_token')).toHaveLength(1)
    expect(readdirSync(fixture.folder)).toHaveLength(1)
  })

  test('is removed when the issuer revokes it', async () => {
    await fixture.login('bob')
    await issuer.revokeUser('bob')
    fixture.expire()
    const run = await fixture.cli('whoami')
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      `sbx-stdio: Signed out: the issuer no longer accepts this sign-in\nhint: sign in again: npx sbx-stdio login ${fixture.url}\n`,
    )
    expect(fixture.isSignedIn).toBe(false)
    const next = await fixture.cli('whoami', '--url', fixture.url)
    expect(next.stderr).toContain(`or sign in: npx sbx-stdio login ${fixture.url}`)
  })

  test('is kept while the issuer is unreachable, and used until it expires', async () => {
    await fixture.login()
    fixture.relay.close()
    fixture.expire(Date.now() + 20_000)
    expect((await fixture.cli('whoami')).code).toBe(0)
    fixture.expire()
    const run = await fixture.cli('whoami')
    const { host } = new URL(fixture.relay.url)
    expect(run.stderr).toBe(
      `sbx-stdio: Cannot reach the issuer ${host}: connection refused\n` +
        'hint: the sign-in service does not respond; try again in a moment\n',
    )
    expect(fixture.isSignedIn).toBe(true)
  })

  test('is not used when a token is given', async () => {
    await fixture.login()
    fixture.answers['GET /api/whoami'] = () => Response.json({ account: 'a', name: 'A', scopes: [] })
    await runCli([process.execPath, MAIN, 'whoami', '--url', fixture.url], {
      env: { ...fixture.env, SBX_TOKEN: 'given' },
    })
    expect(fixture.requests.at(-1)?.authorization).toBe('Bearer given')
  })

  test('is used by an attach', async () => {
    await fixture.login()
    await runCli([process.execPath, MAIN, fixture.url, '--retry-for', '0', '--', 'true'], {
      env: fixture.env,
    })
    const attaches = fixture.requests.filter(({ what }) => what === 'GET /attach')
    expect(attaches.length).toBeGreaterThan(0)
    for (const { authorization } of attaches) expect(authorization).toBe(`Bearer ${fixture.stored.bearer}`)
  })

  test('is renewed when the server reauthorizes a connection; no output is lost', async () => {
    await using sandboxd = await startSandboxd()
    await using proxy = openReauthorizingProxy(sandboxd, (request) => fixture.answer(request))
    fixture.url = proxy.url
    await fixture.login()
    const first = fixture.stored.bearer
    const script =
      'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i; if [ $i = 500 ]; then read x; fi; done'
    const child = fixture.start(fixture.url, '--', 'sh', '-c', script)
    const done = finish(child)
    await eventually(() => proxy.authorizations.length === 1, { what: 'the attach' })
    fixture.expire()
    proxy.requireReauthorization()
    await eventually(() => proxy.authorizations.length === 2, { what: 'the second attach' })
    const proc = ['cmdline', 'environ']
      .map((name) => readFileSync(`/proc/${child.pid}/${name}`, 'utf8'))
      .join('')
    for (const secret of [first, fixture.stored.bearer, fixture.stored.renewal.refreshToken])
      expect(proc).not.toContain(secret)
    void child.stdin.write('go on\n')
    await child.stdin.end()
    const run = await done
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expect(run.stdout.toString()).toBe(Array.from({ length: 2000 }, (_, i) => `${i + 1}\n`).join(''))
    expect(fixture.stored.bearer).not.toBe(first)
    expect(proxy.authorizations).toEqual([`Bearer ${first}`, `Bearer ${fixture.stored.bearer}`])
  })

  /** Refuses the selected bearers. */
  const refuse = (isRefused: (bearer: string) => boolean): ((request: Request) => Response | undefined) => {
    return (request) => {
      const bearer = request.headers.get('authorization')?.slice('Bearer '.length) ?? ''
      if (!isRefused(bearer)) return undefined
      return Response.json(
        { error: { code: 'unauthorized', message: 'The token is not accepted' } },
        { status: 401 },
      )
    }
  }
  const refreshes = () => fixture.relay.grants.filter((grant) => grant === 'refresh_token').length

  test('is renewed once when the server refuses it before its expiry', async () => {
    await fixture.login()
    const first = fixture.stored.bearer
    const check = refuse((bearer) => bearer === first)
    const who = fixture.answers['GET /api/whoami']
    fixture.answers['GET /api/whoami'] = (request) => check(request) ?? who?.(request) ?? new Response()
    const runs = await Promise.all([fixture.cli('whoami'), fixture.cli('whoami')])
    expect(runs.map((run) => run.stdout.toString())).toEqual(['Ann Archer\n', 'Ann Archer\n'])
    expect(refreshes()).toBe(1)
    expect(fixture.stored.bearer).not.toBe(first)
  })

  test('that the server refuses after renewal is reported, and not retried', async () => {
    await fixture.login()
    fixture.answers['GET /api/whoami'] = (request) => refuse(() => true)(request) ?? new Response()
    const before = fixture.requests.length
    const run = await fixture.cli('whoami')
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      'sbx-stdio: Signed out: the server no longer accepts this sign-in: The token is not accepted\n' +
        `hint: sign in again: npx sbx-stdio login ${fixture.url}\n`,
    )
    expect(fixture.requests.slice(before).map(({ what }) => what)).toEqual([
      'GET /api/whoami',
      'GET /api/whoami',
    ])
    expect(refreshes()).toBe(1)
  })

  test('that the server refuses is renewed once for an attach', async () => {
    await using sandboxd = await startSandboxd()
    let check: ReturnType<typeof refuse> = () => undefined
    await using proxy = openReauthorizingProxy(
      sandboxd,
      (request) => fixture.answer(request),
      (request) => check(request),
    )
    fixture.url = proxy.url
    await fixture.login()
    const first = fixture.stored.bearer
    check = refuse((bearer) => bearer === first)
    const run = await runCli([process.execPath, MAIN, fixture.url, '--', 'echo', 'there'], {
      env: fixture.env,
    })
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expect(run.stdout.toString()).toBe('there\n')
    expect(refreshes()).toBe(1)
    check = refuse(() => true)
    const end = await runCli([process.execPath, MAIN, fixture.url, '--', 'true'], { env: fixture.env })
    expect(end.code).toBe(255)
    expect(end.stderr).toBe(
      'sbx-stdio: Signed out: the server no longer accepts this sign-in: The token is not accepted\n' +
        `hint: sign in again: npx sbx-stdio login ${fixture.url}\n`,
    )
    expect(refreshes()).toBe(2)
  })

  test('ends an attach when it has ended', async () => {
    await using sandboxd = await startSandboxd()
    await using proxy = openReauthorizingProxy(sandboxd, (request) => fixture.answer(request))
    fixture.url = proxy.url
    await fixture.login('eve')
    const child = fixture.start(fixture.url, '--', 'cat')
    const done = finish(child)
    await eventually(() => proxy.authorizations.length === 1, { what: 'the attach' })
    await issuer.revokeUser('eve')
    fixture.expire()
    proxy.requireReauthorization()
    const run = await done
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      `sbx-stdio: Signed out: the issuer no longer accepts this sign-in\nhint: sign in again: npx sbx-stdio login ${fixture.url}\n`,
    )
    expect(proxy.authorizations).toHaveLength(1)
  })

  test('is sent to no other origin: port, name or redirect (threat T2)', async () => {
    await fixture.login()
    const { bearer } = fixture.stored
    const seen: (string | null)[] = []
    using other = {
      server: Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch: (request) => {
          seen.push(request.headers.get('authorization'))
          return Response.json({})
        },
      }),
      [Symbol.dispose]() {
        void this.server.stop(true)
      },
    }
    const elsewhere = `http://127.0.0.1:${other.server.port}`
    await fixture.cli('whoami', '--url', elsewhere)
    await fixture.cli('whoami', '--url', `http://localhost:${other.server.port}`)
    expect(seen).toEqual([null, null])
    fixture.answers['GET /api/whoami'] = () => Response.redirect(`${elsewhere}/api/whoami`, 307)
    expect((await fixture.cli('whoami')).code).not.toBe(0)
    await fixture.cli('whoami', '--url', `http://localhost:${fixture.server.port}`)
    expect(seen).toHaveLength(2)
    expect(fixture.requests.at(-1)?.authorization).toBeNull()
    expect(fixture.requests.at(-2)?.authorization).toBe(`Bearer ${bearer}`)
  })
})
