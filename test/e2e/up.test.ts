import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { eventually, isAlive, openRawTcp, readDescendants, readProcessTable } from '@sandwire/testing'
import { type RunningHost, startHost } from './support/control.ts'
import { readLines } from './support/lines.ts'
import { listListening } from './support/listening.ts'
import { AS_NOBODY, canBecomeNobody, NOBODY } from './support/nobody.ts'

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')
/** A user id that no other test uses. */
const OTHER_USER = 54_321
/** Names under which the public port answers on this machine. */
const SERVED = ['localhost', '127.0.0.1', ...(existsSync('/proc/net/if_inet6') ? ['[::1]'] : [])]

/** Runs a `sandwire` command to its end. */
async function sandwire(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, ...env },
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stdout, stderr }
}

function workerdOf(data: string): number {
  return JSON.parse(readFileSync(join(data, 'workerd'), 'utf8')).pid
}

function secretsOf(data: string): string[] {
  return ['local-token', 'keys/signing-key', 'keys/id-key'].map((file) =>
    readFileSync(join(data, file), 'utf8').trim(),
  )
}

/** Command line, environment and name of a process, as far as it can be read. */
function exposedBy(pid: number): string {
  return ['cmdline', 'environ', 'comm']
    .map((file) => {
      try {
        return readFileSync(`/proc/${pid}/${file}`, 'latin1')
      } catch {
        // The process has ended or has no environment.
        return ''
      }
    })
    .join('\n')
}

test.each([
  ['npm alone', 'SIGTERM', (npm: number) => npm],
  ['the process group of npm, as Ctrl-C does', 'SIGINT', (npm: number) => -npm],
] as const)('`npm start` shuts down gracefully on a signal to %s', async (_, signal, targetOf) => {
  const data = mkdtempSync(join(tmpdir(), 'sandwire-npm-start-'))
  const npm = Bun.spawn(['npm', 'start', '--silent', '--', '--port', '0', '--data', data], {
    cwd: resolve(import.meta.dir, '../..'),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  })
  const said = new Response(npm.stderr).text()
  let family: number[] = []
  try {
    for await (const line of readLines(npm.stdout)) if (line.includes('is running at')) break
    family = readDescendants(npm.pid).map(({ pid }) => pid)
    expect(family.length).toBeGreaterThan(1)
    process.kill(targetOf(npm.pid), signal)
    await npm.exited
    await eventually(() => !family.some(isAlive) || undefined, { what: 'the end of the host' })
    expect(await said).toContain('Stopped\n')
  } finally {
    for (const pid of family.filter(isAlive)) process.kill(pid, 'SIGTERM')
    rmSync(data, { recursive: true, force: true })
  }
})

test('an invalid command line prints the help command to run from here', async () => {
  const { code, stderr } = await sandwire(['serve'])
  expect([code, stderr]).toEqual([2, 'sandwire: unknown command "serve"\nhint: npx sandwire --help\n'])
  expect((await sandwire(['--help'])).stdout).toContain('Usage: npx sandwire COMMAND')
})

describe('sandwire up', () => {
  let host: RunningHost
  beforeAll(async () => {
    host = await startHost()
  })
  afterAll(() => host.stop())

  test('prints its address, a sign-in link, an sbx-stdio command and the kind of isolation', () => {
    const output = host.output()
    expect(output).toContain(`Sandwire is running at http://localhost:${host.port}`)
    expect(output).toMatch(
      new RegExp(`http://sandwire-[0-9a-f]{20}.localhost:${host.port}/signin#[A-Za-z0-9_-]{32}\n`),
    )
    expect(output).toContain(`sbx-stdio http://localhost:${host.port}/attach --sandbox dev --cmd bash`)
    expect(output).toMatch(/Isolation {2}(bubblewrap|none)/)
  })

  test.each(['127.0.0.1', 'localhost'])('answers health on %s without a credential', async (name) => {
    const response = await fetch(`http://${name}:${host.port}/healthz`)
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { status: 'ok', version: expect.any(String) },
    ])
    expect((await host.fetch('/readyz')).status).toBe(200)
  })

  test('stores its data in folders and files that only this user can access', () => {
    const modeOf = (name: string): number => statSync(join(host.data, name)).mode & 0o777
    for (const name of ['.', 'keys', 'control']) expect([name, modeOf(name)]).toEqual([name, 0o700])
    for (const name of ['local-token', 'lock', 'host.log', 'keys/signing-key', 'keys/id-key'])
      expect([name, modeOf(name)]).toEqual([name, 0o600])
    // With root, workerd has a user of its own, which may connect to the host.
    const isRoot = process.getuid?.() === 0
    expect([modeOf('run'), modeOf('run/host.sock')]).toEqual(isRoot ? [0o710, 0o660] : [0o700, 0o600])
  })

  test('adds itself to the list of servers that sbx-stdio reads', () => {
    const file = join(host.data, 'config/sandwire/servers.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      servers: SERVED.map((name) => ({
        url: `http://${name}:${host.port}`,
        tokenFile: join(host.data, 'local-token'),
      })),
    })
  })

  test.each([
    ['GET http://localhost/api/sandboxes?token=swl_CANARY HTTP/1.1', 'localhost'],
    ['GET / HTTP/1.1', 'user:CANARY@localhost'],
    ['GET CANARY HTTP/1.1', 'CANARY x'],
  ])('logs no text of a request that workerd itself refuses: %s, Host %s (threat T2)', async (line, name) => {
    await using tcp = await openRawTcp({ port: host.port })
    await tcp.write(`${line}\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    await tcp.ended
    const log = (): string => readFileSync(join(host.data, 'host.log'), 'utf8')
    // A log line about the refused request precedes that of the next request.
    const { length } = log()
    await host.fetch('/api/sandboxes')
    await eventually(() => log().slice(length).includes('"event":"request"'), { what: 'a line of the log' })
    expect(log()).not.toContain('CANARY')
  })

  test('serves the workbench in the content coding that the client accepts', async () => {
    const sendRequest = (file: string, coding: string, more: RequestInit & { decompress?: boolean } = {}) =>
      fetch(`${host.url}${file}`, { headers: { 'accept-encoding': coding }, decompress: false, ...more })
    const page = await (await sendRequest('/', 'identity')).text()
    const files = ['js', 'css'].map((end) => new RegExp(`/assets/[^"]+\\.${end}`).exec(page)?.[0] ?? '')
    const decoders = { br: brotliDecompressSync, gzip: gunzipSync } as const
    for (const file of ['/', ...files]) {
      const plain = await sendRequest(file, 'identity, br;q=0')
      const bytes = await plain.bytes()
      expect(plain.headers.get('content-encoding')).toBeNull()
      for (const coding of ['br', 'gzip'] as const) {
        const got = await sendRequest(file, coding)
        const head = await sendRequest(file, coding, { method: 'HEAD' })
        const [coded, nothing] = [await got.bytes(), await head.bytes()]
        expect(new Uint8Array(decoders[coding](coded))).toEqual(bytes)
        expect([coded.length < bytes.length, nothing.length]).toEqual([true, 0])
        for (const { headers } of [got, head])
          expect(Object.fromEntries(headers)).toMatchObject({
            'content-encoding': coding,
            'content-length': `${coded.length}`,
            vary: 'accept-encoding',
            'cache-control': plain.headers.get('cache-control'),
            'content-type': plain.headers.get('content-type'),
          })
      }
    }
    const tags = await Promise.all(
      ['br', 'gzip', 'identity'].map(async (coding) =>
        (await sendRequest(files[0] ?? '', coding)).headers.get('etag'),
      ),
    )
    expect(new Set(tags).size).toBe(3)
    for (const tag of tags) expect(tag).toMatch(/^"[^"]+"$/)
    const again = { 'accept-encoding': 'br', 'if-none-match': tags[0] ?? '' }
    expect((await sendRequest(files[0] ?? '', '', { headers: again })).status).toBe(304)
    expect(
      (await sendRequest(files[0] ?? '', '', { headers: { ...again, 'accept-encoding': 'gzip' } })).status,
    ).toBe(200)
    expect((await sendRequest(`${files[0] ?? ''}.br`, 'identity')).status).toBe(404)
  })

  test('requires the local token', async () => {
    expect((await host.fetch('/api/sandboxes')).status).toBe(200)
    expect((await fetch(`${host.url}/api/sandboxes`)).status).toBe(401)
    const wrong = { authorization: `Bearer swl_${'x'.repeat(43)}` }
    expect((await host.fetch('/api/sandboxes', { headers: wrong })).status).toBe(401)
  })

  test.each(['evil.example', 'localhost.evil.example:8787', '127.0.0.1.nip.io', 'localhost:1'])(
    'refuses requests with Host %s (threat T10)',
    async (name) => {
      expect((await host.fetch('/api/sandboxes', { headers: { host: name } })).status).toBe(421)
    },
  )

  test.each(['https://evil.example', 'null', 'http://localhost.evil.example'])(
    'refuses requests of pages from %s (threat T1)',
    async (origin) => {
      expect((await host.fetch('/api/sandboxes', { headers: { origin } })).status).toBe(403)
    },
  )

  test('listens on no other port than the public one', () => {
    const addresses = listListening(host.pid)
    expect(addresses.length).toBeGreaterThan(0)
    for (const address of addresses)
      expect([`0100007F:${host.port}`, `00000000000000000000000001000000:${host.port}`]).toContain(address)
  })

  test('refuses RPC to the Worker through CONNECT', async () => {
    await using tcp = await openRawTcp({ port: host.port })
    const name = 'miniflare-unsafe-internal-capnp-connect'
    await tcp.write(`CONNECT ${name} HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
    expect(Buffer.from((await tcp.read()) ?? []).toString()).toStartWith('HTTP/1.1 500 ')
  })

  test('exposes its secrets to no other process and no log', async () => {
    await host.fetch('/api/sandboxes')
    const secrets = secretsOf(host.data)
    const seen = readProcessTable().map(({ pid }) => exposedBy(pid))
    const log = readFileSync(join(host.data, 'host.log'), 'latin1')
    expect(secrets.map((secret) => secret.length > 40)).toEqual([true, true, true])
    for (const secret of secrets) {
      expect(seen.filter((text) => text.includes(secret))).toEqual([])
      expect(log).not.toContain(secret)
    }
  })

  test('logs a request under the same id in control and host', async () => {
    const created = await host.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'logged' }),
    })
    expect(created.status).toBe(201)
    const id = created.headers.get('x-request-id') ?? ''
    const sources = await eventually(
      () => {
        const lines = readFileSync(join(host.data, 'host.log'), 'utf8').trim().split('\n')
        const found = lines.map((line) => JSON.parse(line)).filter((line) => line.request_id === id)
        const from = new Set(found.map((line) => line.source))
        return from.size === 2 && from
      },
      { what: 'both lines of the request' },
    )
    expect(sources).toEqual(new Set(['host', 'control']))
  })

  test('refuses a second host on the same data folder, and names the first', async () => {
    const { code, stdout, stderr } = await sandwire(['up', '--port', '0', '--data', host.data])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(`process ${host.pid}`)
    expect(stderr).toContain(`http://localhost:${host.port}`)
    expect((await host.fetch('/healthz')).status).toBe(200)
  })

  test('refuses a port that is taken, and leaves no lock', async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-taken-'))
    const { code, stderr } = await sandwire(['up', '--port', String(host.port), '--data', data])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^sandwire: Cannot listen on \S+: the port is in use\nhint: .*--port.*\n$/)
    expect(existsSync(join(data, 'lock'))).toBe(false)
    rmSync(data, { recursive: true })
  })

  test('signs a browser in once per sign-in link', async () => {
    const link = new URL((await sandwire(['signin', '--data', host.data])).stdout)
    const signIn = (origin: string, name = new URL(origin).host): Promise<Response> =>
      fetch(`${host.url}/api/signin`, {
        method: 'POST',
        headers: { host: name, origin, 'content-type': 'application/json' },
        body: JSON.stringify({ code: link.hash.slice(1) }),
      })
    // Other programs on this machine get the cookies of these names.
    for (const origin of [host.url, `http://localhost:${host.port}`])
      expect((await signIn(origin)).status).toBe(403)
    expect((await signIn('https://evil.example', link.host)).status).toBe(403)
    const first = await signIn(link.origin)
    expect([first.status, first.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringContaining('HttpOnly'),
    ])
    expect((await signIn(link.origin)).status).toBe(401)
  })

  test('gives fresh sign-in links on request', async () => {
    const first = await sandwire(['signin', '--data', host.data])
    const second = await sandwire(['signin', '--data', host.data])
    expect(first.stdout).toMatch(/^http:\/\/sandwire-[0-9a-f]{20}\.localhost:\d+\/signin#/)
    expect(first.stdout).not.toBe(second.stdout)
  })
})

describe('sandwire', () => {
  test('reports every configuration error, and starts nothing', async () => {
    const env = { SANDWIRE_PORT: 'x', SANDWIRE_BIND: '0.0.0.0', SANDWIRE_ISOLATION: 'maybe' }
    const { code, stderr } = await sandwire(['up', '--data', '/nonexistent/data'], env)
    expect(code).toBe(2)
    for (const name of Object.keys(env)) expect(stderr).toContain(name)
  })

  test.each([[['up', '--prot', '1']], [['serve']], [[]]])('refuses %j in two lines', async (args) => {
    const { code, stderr } = await sandwire(args)
    expect(code).toBe(2)
    expect(stderr).toMatch(/^sandwire: .*\nhint: .*\n$/)
  })

  test('refuses to serve a folder that contains its data folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandwire-served-'))
    const { code, stderr } = await sandwire(['up', '--workspace', folder, '--data', join(folder, 'data')])
    expect(code).toBe(2)
    expect(stderr).toContain('inside the workspace')
    rmSync(folder, { recursive: true })
  })

  test('replaces the local token on request, and the old one stops working', async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-token-'))
    await using first = await startHost({ data })
    await first.stop()
    await using second = await startHost({ data, args: ['--new-token'] })
    expect(second.token).not.toBe(first.token)
    expect((await second.fetch('/api/sandboxes')).status).toBe(200)
    expect((await second.fetch('/api/sandboxes', { headers: first.headers })).status).toBe(401)
    await second.stop()
    rmSync(data, { recursive: true })
  })
})

describe('after a kill or a stop', () => {
  test('a killed workerd restarts on the same port with the same state', async () => {
    await using host = await startHost()
    for (let round = 0; round < 3; round += 1) {
      const before = workerdOf(host.data)
      process.kill(before, 'SIGKILL')
      await eventually(
        async () => (await host.fetch('/api/sandboxes')).status === 200 && workerdOf(host.data) !== before,
        {
          what: 'control to serve again',
        },
      )
    }
    expect(host.output()).toContain('was restarted')
  })

  test('the next host recovers from a killed one, and ends its orphaned workerd', async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-death-'))
    await using first = await startHost({ data })
    const orphan = workerdOf(data)
    first.kill('SIGKILL')
    await first.exited
    expect(isAlive(orphan)).toBe(true)
    await using second = await startHost({ data, args: ['--port', String(first.port)] })
    expect(isAlive(orphan)).toBe(false)
    expect(second.port).toBe(first.port)
    expect(second.token).toBe(first.token)
    expect((await second.fetch('/readyz')).status).toBe(200)
    await second.stop()
    rmSync(data, { recursive: true })
  })

  test('a stopped host leaves no process, lock, socket or entry in the list of servers', async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-stop-'))
    await using host = await startHost({ data })
    const below = readDescendants(host.pid)
    expect(below.length).toBeGreaterThan(0)
    host.kill('SIGINT')
    expect(await host.exited).toEqual({ code: 0, signal: null })
    expect(below.filter(({ pid }) => isAlive(pid))).toEqual([])
    for (const name of ['lock', 'workerd', 'run']) expect(existsSync(join(data, name))).toBe(false)
    expect(JSON.parse(readFileSync(join(data, 'config/sandwire/servers.json'), 'utf8'))).toEqual({
      servers: [],
    })
    expect(host.output()).toContain('Stopped')
    rmSync(data, { recursive: true })
  })
})

test('sandwire up works with a data folder path too long for a socket, and cleans up the short folder it uses instead', async () => {
  const top = mkdtempSync(join(tmpdir(), 'sandwire-long-'))
  const short = mkdtempSync('/tmp/short-')
  const data = join(top, 'x'.repeat(120))
  await using host = await startHost({ data, env: { XDG_RUNTIME_DIR: short } })
  expect((await host.fetch('/readyz')).status).toBe(200)
  expect((await sandwire(['signin', '--data', data])).code).toBe(0)
  await host.stop()
  expect(readdirSync(short).filter((name) => name.startsWith('sandwire-'))).toEqual([])
  for (const folder of [top, short]) rmSync(folder, { recursive: true })
})

test.skipIf(!canBecomeNobody)('sandwire up runs as an unprivileged user without a home folder', async () => {
  const data = mkdtempSync('/tmp/sandwire-nobody-')
  chmodSync(data, 0o700)
  chownSync(data, NOBODY, NOBODY)
  await using host = await startHost({
    data,
    prefix: AS_NOBODY,
    env: { HOME: '/nonexistent', XDG_CONFIG_HOME: undefined, XDG_RUNTIME_DIR: undefined },
  })
  expect((await host.fetch('/readyz')).status).toBe(200)
  expect(statSync(join(data, 'local-token')).uid).toBe(NOBODY)
  expect(host.output()).toContain(`--token-file ${join(data, 'local-token')}`)
  await host.stop()
  rmSync(data, { recursive: true })
})

test.if(canBecomeNobody)(
  'sandwire up refuses a socket folder that another user created, and names it',
  async () => {
    const squatted = `/tmp/sandwire-${OTHER_USER}`
    const folder = mkdtempSync('/tmp/squat-')
    chownSync(folder, OTHER_USER, OTHER_USER)
    mkdirSync(squatted)
    try {
      const prefix = ['setpriv', `--reuid=${OTHER_USER}`, `--regid=${OTHER_USER}`, '--clear-groups']
      const env = { HOME: folder, XDG_RUNTIME_DIR: undefined }
      const starting = startHost({ data: join(folder, 'data'), prefix, env })
      const outcome = await starting.catch((error: unknown) => String(error))
      expect(outcome).toContain(`Cannot use "${squatted}" for sandbox sockets`)
    } finally {
      for (const each of [squatted, folder]) rmSync(each, { recursive: true })
    }
  },
)

test('sandwire up without isolation names the user that commands run as', async () => {
  await using host = await startHost({ env: { SANDWIRE_ISOLATION: 'none' } })
  const whose = process.getuid?.() === 0 ? 'ROOT' : 'you'
  expect(host.output()).toContain(`commands in sandboxes run as ${whose} on this machine`)
})
