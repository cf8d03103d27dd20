import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { eventually } from '@sandwire/testing'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { type CliRun, finish, runCli, startCli } from './cli-runner.ts'
import { type IssuerRelay, openIssuerRelay } from './support/issuer-relay.ts'
import { openReauthorisingDoor } from './support/reauthorising-door.ts'
import { startSandboxd } from './support/sandboxd.ts'

const MAIN = resolve(import.meta.dir, '../../apps/cli/src/main.ts')

/** What the stand-in for control was asked. */
interface Asked {
  readonly what: string
  readonly authorization: string | null
}
/** A sign-in as it is stored. */
interface Stored {
  bearer: string
  expiresMs: number
  renewal: { refreshToken: string; tokenEndpoint: string }
}

let folder: string
let env: Record<string, string | undefined>
let issuer: TestIssuer
let relay: IssuerRelay
let server: ReturnType<typeof Bun.serve>
let url: string
let asked: Asked[]
/** Answers by method and path; what is not here is 404. */
let answers: Record<string, (request: Request) => Response | Promise<Response>>

function nameIn(request: Request): Response {
  const [, token = ''] = (request.headers.get('authorization') ?? '').split(' ')
  if (token === '')
    return Response.json({ error: { code: 'unauthorized', message: 'Who is it?' } }, { status: 401 })
  const { name, sub } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<
    string,
    string
  >
  return Response.json({ account: sub, name, scopes: ['connect'], via: 'bearer', expiresMs: null })
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cli-sign-in-'))
  issuer = await startIssuer()
  relay = openIssuerRelay(issuer.url)
  asked = []
  answers = {
    'GET /api/auth': () => auth(),
    'GET /api/whoami': nameIn,
    'POST /api/signout': () => new Response(null, { status: 204 }),
  }
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      const what = `${request.method} ${new URL(request.url).pathname}`
      asked.push({ what, authorization: request.headers.get('authorization') })
      return answers[what]?.(request) ?? new Response('none', { status: 404 })
    },
  })
  url = `http://127.0.0.1:${server.port}`
  env = {
    XDG_CONFIG_HOME: folder,
    HOME: folder,
    SBX_URL: undefined,
    DISPLAY: undefined,
    npm_command: undefined,
  }
})
afterEach(async () => {
  await server.stop(true)
  relay.close()
  await issuer[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

function auth(changes: Record<string, unknown> = {}): Response {
  const { id, name, clientId, requestScopes, bearer } = issuer.configFor()
  const endpoints = relay.endpoints
  const known = {
    id,
    name,
    issuer: issuer.url,
    clientId,
    requestScopes,
    requestParameters: {},
    bearer,
    endpoints,
  }
  return Response.json({ mode: 'open', local: false, issuers: [{ ...known, ...changes }] })
}

function cli(...argv: string[]): Promise<CliRun> {
  return runCli([process.execPath, MAIN, ...argv], { env })
}

/** Starts to sign in, and waits for what it shows. */
async function beginLogin(...argv: string[]) {
  const child = startCli([process.execPath, MAIN, 'login', url, ...argv], env)
  await child.stdin.end()
  let shown = ''
  const following = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of child.stderr) shown += decoder.decode(chunk, { stream: true })
  })()
  const find = (): string | undefined => /and type {2}(\S+)/.exec(shown)?.[1]
  await eventually(() => find() !== undefined, { what: 'a code is shown' })
  const done = async () => {
    const stdout = await new Response(child.stdout).text()
    await Promise.all([following, child.exited])
    return { code: child.exitCode, stdout, stderr: shown }
  }
  return { child, code: find() ?? '', shown: () => shown, done }
}

async function login(): Promise<void> {
  const { code, done } = await beginLogin()
  await issuer.approveDevice(code, 'ann')
  expect(await done()).toMatchObject({ code: 0 })
}

const SIGN_INS = (): string => join(folder, 'sandwire', 'sign-ins')

function storedFile(): string {
  const [name, ...more] = readdirSync(SIGN_INS()).filter((each) => each.endsWith('.json'))
  if (name === undefined || more.length > 0) throw new Error('There is not one sign-in')
  return join(SIGN_INS(), name)
}

function stored(): Stored {
  return JSON.parse(readFileSync(storedFile(), 'utf8')) as Stored
}

/** As if time had passed. */
function expire(): void {
  writeFileSync(storedFile(), JSON.stringify({ ...stored(), expiresMs: 1 }), { mode: 0o600 })
}

function isSignedIn(): boolean {
  try {
    return readdirSync(SIGN_INS()).some((name) => name.endsWith('.json'))
  } catch {
    return false
  }
}

describe('login', () => {
  test('shows a page and a code, and ends with who one is', async () => {
    const { child, code, shown, done } = await beginLogin()
    expect(shown()).toContain(`Open      ${issuer.url}/device\n`)
    expect(shown()).toContain(`or open   ${issuer.url}/device?user_code=${code}\n`)
    expect(isSignedIn()).toBe(false)
    const { pid } = child
    const inProc = readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'utf8')
    await issuer.approveDevice(code, 'ann')
    const run = await done()
    expect(run.code).toBe(0)
    expect(run.stderr).toEndWith(`sbx-stdio: Signed in to 127.0.0.1:${server.port} as Ann Archer\n`)
    const { bearer, renewal } = stored()
    expect(run.stderr + run.stdout + inProc).not.toContain(bearer.slice(-40))
    expect(run.stderr + run.stdout + inProc).not.toContain(renewal.refreshToken)
    expect(statSync(storedFile()).mode & 0o777).toBe(0o600)
    expect(statSync(SIGN_INS()).mode & 0o777).toBe(0o700)
    const who = await cli('whoami')
    expect(who).toMatchObject({ code: 0 })
    expect(who.stdout.toString()).toBe('Ann Archer\n')
    expect(asked.at(-1)).toEqual({ what: 'GET /api/whoami', authorization: `Bearer ${bearer}` })
  })

  test('finds the endpoints in the metadata of the issuer, and prints JSON', async () => {
    answers['GET /api/auth'] = () => auth({ endpoints: {} })
    const { code, done } = await beginLogin('--json')
    await issuer.approveDevice(code, 'bob')
    const run = await done()
    expect(JSON.parse(run.stdout)).toEqual({
      server: url,
      origin: url,
      name: 'Bob Baker',
      issuer: 'test',
    })
    expect(stored().renewal.tokenEndpoint).toBe(`${issuer.url}/token`)
  }, 30_000)

  test('ends when it is declined', async () => {
    const { code, done } = await beginLogin()
    await issuer.refuseDevice(code)
    const run = await done()
    expect(run.stderr).toContain('sbx-stdio: Cannot sign in: it was declined\nhint: ')
    expect(run.code).toBe(255)
    expect(isSignedIn()).toBe(false)
  })

  test('is stopped by Ctrl-C, and leaves nothing behind', async () => {
    const { child, done } = await beginLogin()
    child.kill('SIGINT')
    const run = await done()
    expect(run.code).toBe(130)
    expect(run.stderr).toEndWith('stopped; you are not signed in\n')
    expect(isSignedIn()).toBe(false)
  })

  test('stores nothing that the server does not accept', async () => {
    answers['GET /api/whoami'] = () =>
      Response.json({ error: { code: 'unauthorized', message: 'wrong audience' } }, { status: 401 })
    const { code, done } = await beginLogin()
    await issuer.approveDevice(code, 'ann')
    expect((await done()).stderr).toContain('the server does not accept it: wrong audience')
    expect(isSignedIn()).toBe(false)
  })

  test('says so when the server has no issuer, or several', async () => {
    answers['GET /api/auth'] = () => Response.json({ mode: 'local', local: true, issuers: [] })
    expect((await cli('login', url)).stderr).toContain('the server has no issuer for it')
    const { id: _, ...rest } = ((await auth().json()) as { issuers: [Record<string, unknown>] }).issuers[0]
    answers['GET /api/auth'] = () =>
      Response.json({
        issuers: [
          { ...rest, id: 'one' },
          { ...rest, id: 'two' },
        ],
      })
    const several = await cli('login', url)
    expect(several.stderr).toContain(
      'There are several issuers: one, two\nhint: choose one with --issuer one',
    )
    expect(several.code).toBe(2)
  })
})

describe('a stored sign-in', () => {
  test('is renewed before it ends, and the new refresh token is kept', async () => {
    await login()
    const first = stored()
    expect((await cli('whoami')).code).toBe(0)
    expect(relay.grants.filter((grant) => grant === 'refresh_token')).toEqual([])
    expire()
    expect((await cli('whoami')).stdout.toString()).toBe('Ann Archer\n')
    const second = stored()
    expect(second.bearer).not.toBe(first.bearer)
    expect(second.renewal.refreshToken).not.toBe(first.renewal.refreshToken)
    expect(asked.at(-1)?.authorization).toBe(`Bearer ${second.bearer}`)
    expect(statSync(storedFile()).mode & 0o777).toBe(0o600)
    expire()
    expect((await cli('whoami')).code).toBe(0)
  })

  test('is renewed once when many processes want it at once', async () => {
    await login()
    expire()
    const runs = await Promise.all(Array.from({ length: 6 }, () => cli('whoami')))
    expect(runs.map((run) => run.stderr + String(run.code)).filter((text) => !text.endsWith('0'))).toEqual([])
    expect(relay.grants.filter((grant) => grant === 'refresh_token')).toHaveLength(1)
    expect(readdirSync(SIGN_INS())).toHaveLength(1)
  }, 30_000)

  test('is over when the issuer says so, and the next command says so too', async () => {
    await login()
    await issuer.revokePerson('ann')
    expire()
    const run = await cli('whoami')
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      `sbx-stdio: Signed out: the issuer no longer accepts this sign-in\nhint: sign in again: npx sbx-stdio login ${url}\n`,
    )
    expect(isSignedIn()).toBe(false)
    const next = await cli('whoami', '--url', url)
    expect(next.stderr).toContain(`or sign in: npx sbx-stdio login ${url}`)
  })

  test('stays when the issuer is away, and is used as long as it is good', async () => {
    await login()
    relay.close()
    const soon = { ...stored(), expiresMs: Date.now() + 20_000 }
    writeFileSync(storedFile(), JSON.stringify(soon), { mode: 0o600 })
    expect((await cli('whoami')).code).toBe(0)
    expire()
    const run = await cli('whoami')
    expect(run.stderr).toContain('The issuer cannot be reached: connection refused')
    expect(isSignedIn()).toBe(true)
  })

  test('gives way to a token that is given', async () => {
    await login()
    answers['GET /api/whoami'] = () => Response.json({ account: 'a', name: 'A', scopes: [] })
    await runCli([process.execPath, MAIN, 'whoami', '--url', url], { env: { ...env, SBX_TOKEN: 'given' } })
    expect(asked.at(-1)?.authorization).toBe('Bearer given')
  })

  test('is used by an attach', async () => {
    await login()
    await runCli([process.execPath, MAIN, url, '--retry-for', '0', '--', 'true'], { env })
    const attaches = asked.filter(({ what }) => what === 'GET /attach')
    expect(attaches.length).toBeGreaterThan(0)
    for (const { authorization } of attaches) expect(authorization).toBe(`Bearer ${stored().bearer}`)
  })

  test('is shown anew, and fresh, when a server asks for it again; nothing of the stream is lost', async () => {
    await using sandboxd = await startSandboxd()
    await using door = openReauthorisingDoor(sandboxd, (request) => {
      const what = `${request.method} ${new URL(request.url).pathname}`
      return answers[what]?.(request) ?? new Response('none', { status: 404 })
    })
    url = door.url
    await login()
    const first = stored().bearer
    const script =
      'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i; if [ $i = 500 ]; then read x; fi; done'
    const child = startCli([process.execPath, MAIN, url, '--', 'sh', '-c', script], env)
    const done = finish(child)
    await eventually(() => door.shown.length === 1, { what: 'the attach' })
    expire()
    door.askAgain()
    await eventually(() => door.shown.length === 2, { what: 'the second attach' })
    void child.stdin.write('go on\n')
    await child.stdin.end()
    const run = await done
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expect(run.stdout.toString()).toBe(Array.from({ length: 2000 }, (_, i) => `${i + 1}\n`).join(''))
    expect(stored().bearer).not.toBe(first)
    expect(door.shown).toEqual([`Bearer ${first}`, `Bearer ${stored().bearer}`])
  }, 30_000)

  test('ends an attach in words when it is over', async () => {
    await using sandboxd = await startSandboxd()
    await using door = openReauthorisingDoor(sandboxd, (request) => {
      const what = `${request.method} ${new URL(request.url).pathname}`
      return answers[what]?.(request) ?? new Response('none', { status: 404 })
    })
    url = door.url
    await login()
    const child = startCli([process.execPath, MAIN, url, '--', 'cat'], env)
    const done = finish(child)
    await eventually(() => door.shown.length === 1, { what: 'the attach' })
    await issuer.revokePerson('ann')
    expire()
    door.askAgain()
    const run = await done
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      `sbx-stdio: Signed out: the issuer no longer accepts this sign-in\nhint: sign in again: npx sbx-stdio login ${url}\n`,
    )
    expect(door.shown).toHaveLength(1)
  }, 30_000)

  test('is sent to no other origin: another port, another name, a redirect (threat T2)', async () => {
    await login()
    const { bearer } = stored()
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
    await cli('whoami', '--url', elsewhere)
    await cli('whoami', '--url', `http://localhost:${other.server.port}`)
    expect(seen).toEqual([null, null])
    answers['GET /api/whoami'] = () => Response.redirect(`${elsewhere}/api/whoami`, 307)
    expect((await cli('whoami')).code).not.toBe(0)
    await cli('whoami', '--url', `http://localhost:${server.port}`)
    expect(seen).toHaveLength(2)
    expect(asked.at(-1)?.authorization).toBeNull()
    expect(asked.at(-2)?.authorization).toBe(`Bearer ${bearer}`)
  })
})

describe('logout', () => {
  test('tells the server and the issuer, and forgets', async () => {
    await login()
    const { bearer, renewal } = stored()
    const run = await cli('logout', url)
    expect(run).toMatchObject({ code: 0, stderr: `sbx-stdio: Signed out of 127.0.0.1:${server.port}\n` })
    expect(asked.at(-1)).toEqual({ what: 'POST /api/signout', authorization: `Bearer ${bearer}` })
    expect(isSignedIn()).toBe(false)
    const again = await fetch(`${issuer.url}/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        client_id: issuer.clientId,
        refresh_token: renewal.refreshToken,
      }),
    })
    expect(await again.json()).toMatchObject({ error: 'invalid_grant' })
    expect((await cli('logout', url)).stderr).toContain('you are not signed in')
  })

  test('forgets although nobody can be told, and says so', async () => {
    await login()
    await server.stop(true)
    relay.close()
    const run = await cli('logout')
    expect(run.code).toBe(0)
    expect(run.stderr).toContain('Signed out of')
    expect(run.stderr).toContain('the server could not be told')
    expect(run.stderr).toContain('the issuer could not be told: The issuer cannot be reached')
    expect(isSignedIn()).toBe(false)
  })
})

describe('a hostile server', () => {
  test('that signs in like another one gets nothing unless it is trusted (threat T2)', async () => {
    await login()
    const other = `http://localhost:${server.port}`
    const run = await cli('login', other)
    expect(run.code).toBe(2)
    expect(run.stderr).toContain(`signs in like ${url}: what it gets would be good there too`)
    expect(run.stderr).toContain(`hint: npx sbx-stdio login ${other} --trust`)
    expect(asked.at(-1)).toEqual({ what: 'GET /api/auth', authorization: null })
    url = other
    const { code, done } = await beginLogin('--trust')
    await issuer.approveDevice(code, 'ann')
    expect((await done()).code).toBe(0)
  })

  const MANY = 'x'.repeat(1024 * 1024)

  test('cannot fill the memory with its answer', async () => {
    answers['GET /api/auth'] = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new TextEncoder().encode(MANY)),
        }),
      )
    const run = await cli('login', url)
    expect(run.stderr).toContain('The answer is too long')
    expect(run.code).toBe(255)
  }, 30_000)

  test.each([
    ['nonsense', () => new Response('<html>')],
    ['a list', () => Response.json([])],
    ['an issuer over plain http (threat T2)', () => auth({ issuer: 'http://login.example' })],
    [
      'an endpoint over plain http (threat T2)',
      () => auth({ endpoints: { token: 'http://login.example/t' } }),
    ],
  ])('is not believed: %s', async (_, answer) => {
    answers['GET /api/auth'] = answer
    const run = await cli('login', url)
    expect(run.stderr).toContain('Cannot understand the answer of the server')
    expect(relay.grants).toEqual([])
  })

  test('is not signed in to over plain http (threat T2)', async () => {
    const run = await cli('login', 'http://sandwire.example')
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
    answers['GET /api/auth'] = () => auth({ issuer: at(), endpoints: {} })
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
    const run = await cli('login', url)
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
    const run = await cli('login', url)
    expect(run.code).toBe(255)
    expect(run.stderr).toContain('sbx-stdio: ')
    expect(run.stderr).not.toContain('Internal')
    expect(run.stderr).not.toContain('and type')
    expect(seen).not.toContain('/token')
    expect(isSignedIn()).toBe(false)
  })

  test.each(['/.well-known/openid-configuration', '/device', '/token'])(
    'that redirects %s is not followed',
    async (path) => {
      says[path] = () => Response.redirect(`${relay.url}/stolen`, 307)
      const run = await cli('login', url)
      expect(run.code).toBe(255)
      expect(run.stderr).toContain('the answer of the issuer is not understood')
      expect(relay.grants).toEqual([])
      expect(isSignedIn()).toBe(false)
    },
  )
})
