import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { SignInScene } from './support/sign-in-scene.ts'

let scene: SignInScene
beforeEach(async () => void (scene = await SignInScene.open()))
afterEach(() => scene[Symbol.asyncDispose]())

describe('a hostile server', () => {
  test('that signs in like another one gets nothing unless it is trusted (threat T2)', async () => {
    await scene.login()
    const other = `http://localhost:${scene.server.port}`
    const run = await scene.cli('login', other)
    expect(run.code).toBe(2)
    expect(run.stderr).toContain(`signs in like ${scene.url}: what it gets would be good there too`)
    expect(run.stderr).toContain(`hint: npx sbx-stdio login ${other} --trust`)
    expect(scene.asked.at(-1)).toEqual({ what: 'GET /api/auth', authorization: null })
    scene.url = other
    const { code, done } = await scene.beginLogin('--trust')
    await scene.issuer.approveDevice(code, 'ann')
    expect((await done()).code).toBe(0)
  })

  const MANY = 'x'.repeat(1024 * 1024)

  test('cannot fill the memory with its answer', async () => {
    scene.answers['GET /api/auth'] = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new TextEncoder().encode(MANY)),
        }),
      )
    const run = await scene.cli('login', scene.url)
    expect(run.stderr).toContain('The answer is too long')
    expect(run.code).toBe(255)
  }, 30_000)

  test.each([
    ['nonsense', () => new Response('<html>')],
    ['a list', () => Response.json([])],
    ['an issuer over plain http (threat T2)', () => scene.auth({ issuer: 'http://login.example' })],
    [
      'an endpoint over plain http (threat T2)',
      () => scene.auth({ endpoints: { token: 'http://login.example/t' } }),
    ],
  ])('is not believed: %s', async (_, answer) => {
    scene.answers['GET /api/auth'] = answer
    const run = await scene.cli('login', scene.url)
    expect(run.stderr).toContain('Cannot understand the answer of the server')
    expect(scene.relay.grants).toEqual([])
  })

  test('is not signed in to over plain http (threat T2)', async () => {
    const run = await scene.cli('login', 'http://sandwire.example')
    expect(run.stderr).toContain('whoever is on the way could read it')
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
    scene.answers['GET /api/auth'] = () => scene.auth({ issuer: at(), endpoints: {} })
  })
  afterEach(() => hostile.stop(true))

  test('cannot make the terminal obey', async () => {
    says['/device'] = () =>
      device({
        user_code: 'A\x1b]52;c;ZXZpbA==\x07B',
        verification_uri: `${at()}/\x1b[2Jpage`,
        verification_uri_complete: 'javascript:alert(1)',
      })
    says['/token'] = () =>
      Response.json({ error: 'x\x1b[31m', error_description: '\x1b[2Jd' }, { status: 400 })
    const run = await scene.cli('login', scene.url)
    // oxlint-disable-next-line no-control-regex
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
  ])('is not believed: %s', async (_, path, answer) => {
    says[path] = answer
    const run = await scene.cli('login', scene.url)
    expect(run.code).toBe(255)
    expect(run.stderr).toContain('sbx-stdio: ')
    expect(run.stderr).not.toContain('Internal')
    expect(run.stderr).not.toContain('and type')
    expect(seen).not.toContain('/token')
    expect(scene.isSignedIn).toBe(false)
  })

  test.each(['/.well-known/openid-configuration', '/device', '/token'])(
    'that redirects %s is not followed',
    async (path) => {
      says[path] = () => Response.redirect(`${scene.relay.url}/stolen`, 307)
      const run = await scene.cli('login', scene.url)
      expect(run.code).toBe(255)
      expect(run.stderr).toContain('the answer of the issuer is not understood')
      expect(scene.relay.grants).toEqual([])
      expect(scene.isSignedIn).toBe(false)
    },
  )
})
