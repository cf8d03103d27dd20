import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { MAIN, runCli } from './cli-runner.ts'
import { REMOTE_SERVER_PROBLEM, openRemoteServer } from './support/remote-server.ts'
import { SignInFixture } from './support/sign-in-fixture.ts'

/** Endpoints of a local service. */
function endpointsAt(own: string) {
  return { token: `${own}/admin/restart`, deviceAuthorization: `${own}/admin/restart` }
}

let issuer: TestIssuer
let fixture: SignInFixture
beforeAll(async () => void (issuer = await startIssuer()))
afterAll(() => issuer[Symbol.asyncDispose]())
beforeEach(() => void (fixture = new SignInFixture(issuer)))
afterEach(() => fixture[Symbol.asyncDispose]())

describe('a hostile server', () => {
  test('that shares an issuer with another server gets no token unless it is trusted (threat T2)', async () => {
    await fixture.login()
    const other = `http://localhost:${fixture.server.port}`
    const run = await fixture.cli('login', other)
    expect(run.code).toBe(2)
    expect(run.stderr).toContain(`uses the same issuer and client as ${fixture.url}`)
    expect(run.stderr).toContain(`hint: npx sbx-stdio login ${other} --trust`)
    expect(fixture.requests.at(-1)).toEqual({ what: 'GET /api/auth', authorization: null })
    fixture.url = other
    const { code, done } = await fixture.beginLogin('--trust')
    await issuer.approveDevice(code, 'ann')
    expect((await done()).code).toBe(0)
  })

  describe('that asks for a token of another server gets none unless it is trusted (threat T2)', () => {
    /** The stand-in under another origin. */
    const hostile = (): string => `http://localhost:${fixture.server.port}`
    const metadata = () => ({ issuer: hostile(), ...fixture.relay.metadata })

    test.each<[string, () => Readonly<Record<string, unknown>>]>([
      ['by another spelling of the issuer', () => ({ issuer: `${issuer.url}/` })],
      [
        'by endpoints of the issuer',
        () => ({
          issuer: hostile(),
          endpoints: {
            token: fixture.relay.metadata['token_endpoint'],
            deviceAuthorization: fixture.relay.metadata['device_authorization_endpoint'],
          },
        }),
      ],
      ['by metadata that names endpoints of the issuer', () => ({ issuer: hostile() })],
      ['by metadata and another client', () => ({ issuer: hostile(), clientId: issuer.otherClientId })],
      ['by another client', () => ({ clientId: issuer.otherClientId })],
    ])('%s', async (_, changes) => {
      for (const isSignedIn of [true, false]) {
        if (isSignedIn) await fixture.login()
        // Without a sign-in there is no other server to compare with.
        else if (changes()['issuer'] === undefined) return
        else await fixture.cli('logout', fixture.url)
        fixture.requests.length = 0
        // Without an ID token, which names its issuer.
        const hostileAuth = { requestScopes: ['sandbox:connect'], ...changes() }
        fixture.answers['GET /api/auth'] = () => fixture.auth(hostileAuth)
        fixture.answers['GET /.well-known/openid-configuration'] = () => Response.json(metadata())
        const run = await fixture.tryLogin(hostile())
        expect(run.code).not.toBe(0)
        expect(fixture.requests.filter(({ authorization }) => authorization !== null)).toEqual([])
        fixture.answers['GET /api/auth'] = () => fixture.auth()
      }
    })

    test('by a code that it requested for itself', async () => {
      fixture.answers['GET /api/auth'] = () => fixture.auth({ issuer: hostile() })
      fixture.answers['GET /.well-known/openid-configuration'] = () =>
        Response.json({
          issuer: hostile(),
          token_endpoint: `${hostile()}/token`,
          device_authorization_endpoint: `${hostile()}/device`,
        })
      fixture.answers['POST /token'] = () => Response.json({ error: 'access_denied' }, { status: 400 })
      fixture.answers['POST /device'] = async () => {
        const body = new URLSearchParams({ client_id: issuer.clientId, scope: 'openid' })
        return await fetch(String(fixture.relay.metadata['device_authorization_endpoint']), {
          method: 'POST',
          body,
        })
      }
      const run = await fixture.tryLogin(hostile())
      expect(run.stderr).not.toContain('Enter code')
      const { host } = new URL(issuer.url)
      expect(run.stderr).toContain(`the page is at ${host}, not at the issuer ${new URL(hostile()).host}`)
      expect(run.stderr).toContain(`sbx-stdio login ${hostile()} --trust`)
      expect(run.code).toBe(2)
    })

    test('and the refused token is revoked', async () => {
      await fixture.login()
      fixture.answers['GET /api/auth'] = () => fixture.auth({ clientId: issuer.otherClientId })
      const run = await fixture.tryLogin(hostile())
      expect(run.stderr).toContain(`${fixture.url} accepts the same token`)
      expect(run.stderr).toContain(`hint: npx sbx-stdio login ${hostile()} --trust`)
      expect(fixture.relay.paths.at(-1)).toBe('/token/revocation')
    })
  })

  const MANY = 'x'.repeat(1024 * 1024)

  test('cannot exhaust memory with its response', async () => {
    fixture.answers['GET /api/auth'] = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new TextEncoder().encode(MANY)),
        }),
      )
    const run = await fixture.cli('login', fixture.url)
    expect(run.stderr).toContain('The response is too long')
    expect(run.code).toBe(255)
  })

  test.each([
    ['nonsense', () => new Response('<html>')],
    ['a list', () => Response.json([])],
    ['an issuer over plain http (threat T2)', () => fixture.auth({ issuer: 'http://login.example' })],
  ])('is refused: %s', async (_, answer) => {
    fixture.answers['GET /api/auth'] = answer
    const run = await fixture.cli('login', fixture.url)
    expect(run.stderr).toContain('Cannot understand the response of the server')
    expect(fixture.relay.grants).toEqual([])
  })

  const remoteTest = test.skipIf(REMOTE_SERVER_PROBLEM !== '')

  remoteTest.each([
    ['as the issuer', (own: string) => ({ issuer: own })],
    ['as the issuer, with endpoints', (own: string) => ({ issuer: own, endpoints: endpointsAt(own) })],
  ])(
    `elsewhere cannot direct requests to a local service: %s (threat T2)${REMOTE_SERVER_PROBLEM}`,
    async (_, changes) => {
      const { port } = fixture.server
      await using remote = await openRemoteServer(() => fixture.auth(changes(`http://127.0.0.1:${port}`)))
      const run = await runCli([process.execPath, MAIN, 'login', remote.url, '--trust'], {
        env: { ...fixture.env, ...remote.env },
      })
      expect(run.stderr).toContain(
        `Cannot sign in: the server refers to 127.0.0.1:${port} on this machine, but is not there itself`,
      )
      expect(run.stderr).toContain('hint: do not sign in')
      expect(run.code).toBe(255)
      expect(fixture.requests).toEqual([])
      expect(fixture.isSignedIn).toBe(false)
    },
  )

  remoteTest(
    `elsewhere cannot direct requests to a private network unless it is trusted (threat T2)${REMOTE_SERVER_PROBLEM}`,
    async () => {
      await using remote = await openRemoteServer(() => fixture.auth({ issuer: 'https://192.168.7.1' }))
      const login = (...more: readonly string[]) =>
        runCli([process.execPath, MAIN, 'login', remote.url, ...more], {
          env: { ...fixture.env, ...remote.env },
        })
      const run = await login()
      expect(run.stderr).toContain('the server refers to 192.168.7.1 in a private network')
      expect(run.stderr).toContain(
        'hint: if you trust it: npx sbx-stdio login https://remote.example --trust',
      )
      expect(run.code).toBe(2)
      expect((await login('--trust')).stderr).toContain('Cannot reach the issuer 192.168.7.1')
    },
  )

  remoteTest(
    `elsewhere cannot direct requests to a local service through its issuer (threat T2)${REMOTE_SERVER_PROBLEM}`,
    async () => {
      const own = `http://127.0.0.1:${fixture.server.port}`
      const issuer = 'https://remote.example'
      const metadata = {
        issuer,
        token_endpoint: `${own}/admin/restart`,
        device_authorization_endpoint: `${own}/admin/restart`,
      }
      await using remote = await openRemoteServer((request) =>
        new URL(request.url).pathname === '/api/auth'
          ? fixture.auth({ issuer, endpoints: endpointsAt(own) })
          : Response.json(metadata),
      )
      const run = await runCli([process.execPath, MAIN, 'login', remote.url], {
        env: { ...fixture.env, ...remote.env },
      })
      expect(run.stderr).toContain(
        `the issuer refers to 127.0.0.1:${fixture.server.port} on this machine, but is not there itself`,
      )
      expect(fixture.requests).toEqual([])
    },
  )

  test('is reported before it directs a sign-in to another host', async () => {
    const { shown, interrupt, done } = await fixture.beginLogin()
    const relay = new URL(fixture.relay.url).host
    expect(shown()).toContain(`sbx-stdio: the sign-in also uses ${relay}`)
    expect(shown().indexOf(relay)).toBeLessThan(shown().indexOf('Enter code'))
    interrupt()
    await done()
  })

  test('is refused over plain http (threat T2)', async () => {
    const run = await fixture.cli('login', 'http://sandwire.example')
    expect(run.stderr).toContain('the connection is not encrypted')
    expect(run.code).toBe(2)
  })
})

describe('a hostile issuer', () => {
  /** Answers of the issuer by path. */
  let says: Record<string, () => Response>
  let hostile: ReturnType<typeof Bun.serve>
  const seen: string[] = []
  const at = (): string => `http://127.0.0.1:${hostile.port}`
  const metadata = (changes: Record<string, unknown> = {}): Response =>
    Response.json({
      issuer: at(),
      token_endpoint: `${at()}/token`,
      device_authorization_endpoint: `${at()}/device`,
      ...changes,
    })
  const device = (changes: Record<string, unknown> = {}): Response =>
    Response.json({
      device_code: 'd',
      user_code: 'CODE',
      verification_uri: `${at()}/page`,
      expires_in: 600,
      interval: 1,
      ...changes,
    })

  beforeEach(() => {
    seen.length = 0
    hostile = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        const { pathname } = new URL(request.url)
        seen.push(pathname)
        return says[pathname]?.() ?? new Response('none', { status: 404 })
      },
    })
    says = {
      '/.well-known/openid-configuration': () => metadata(),
      '/device': () => device(),
      '/token': () => Response.json({ error: 'access_denied' }, { status: 400 }),
    }
    fixture.answers['GET /api/auth'] = () => fixture.auth({ issuer: at() })
  })
  afterEach(() => hostile.stop(true))

  test('cannot send control characters to the terminal', async () => {
    says['/device'] = () =>
      device({
        user_code: 'A\x1b]52;c;ZXZpbA==\x07B',
        verification_uri: `${at()}/\x1b[2Jpage`,
        verification_uri_complete: 'javascript:alert(1)',
      })
    says['/token'] = () =>
      Response.json({ error: 'x\x1b[31m', error_description: '\x1b[2Jd' }, { status: 400 })
    const run = await fixture.cli('login', fixture.url)
    // oxlint-disable-next-line no-control-regex -- they are what must not be printed
    expect(run.stderr).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/)
    expect(run.stderr).not.toContain('javascript')
    expect(run.stderr).toContain(`${at()}/%1B[2Jpage`)
  })

  test.each([
    ['a page that is none', '/device', () => device({ verification_uri: 'file:///etc/passwd' })],
    [
      'metadata of another issuer',
      '/.well-known/openid-configuration',
      () => metadata({ issuer: 'https://x' }),
    ],
    [
      'a token endpoint over plain http (threat T2)',
      '/.well-known/openid-configuration',
      () => metadata({ token_endpoint: 'http://login.example/token' }),
    ],
    [
      'a device endpoint in a link-local network (threat T2)',
      '/.well-known/openid-configuration',
      () => metadata({ device_authorization_endpoint: 'https://169.254.169.254/device' }),
    ],
    [
      'no device endpoint',
      '/.well-known/openid-configuration',
      () => metadata({ device_authorization_endpoint: undefined }),
    ],
    [
      'an answer without end',
      '/device',
      () =>
        new Response(
          new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) }),
        ),
    ],
    ['nonsense', '/device', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
  ])('is refused: %s', async (_, path, answer) => {
    says[path] = answer
    const run = await fixture.cli('login', fixture.url)
    expect(run.code).toBe(255)
    expect(run.stderr).toContain('sbx-stdio: ')
    expect(run.stderr).not.toContain('Internal')
    expect(run.stderr).not.toContain('Enter code')
    expect(seen).not.toContain('/token')
    expect(fixture.isSignedIn).toBe(false)
  })

  test.each(['/.well-known/openid-configuration', '/device', '/token'])(
    'that redirects %s is not followed',
    async (path) => {
      says[path] = () => Response.redirect(`${fixture.relay.url}/stolen`, 307)
      const run = await fixture.cli('login', fixture.url)
      expect(run.code).toBe(255)
      expect(run.stderr).toContain('the issuer sent an invalid response')
      expect(fixture.relay.grants).toEqual([])
      expect(fixture.isSignedIn).toBe(false)
    },
  )
})
