import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { eventually } from '@sandwire/testing'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { type RunningHost, startHost } from './support/control.ts'

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')
const PUBLIC = 'https://sandwire.example'
/** A cold start builds the bundle. */
const TIMEOUT_MS = 180_000
const problem =
  Bun.which('openssl') === null ? 'no openssl' : Bun.which('bwrap') === null ? 'no bubblewrap' : undefined

/** The largest settings that the host accepts; control must accept them too. */
const LARGEST = {
  limits: {
    attachesPerMinutePerAddress: 1_000_000,
    attachesPerMinutePerUser: 1_000_000,
    workspaceCostPerMinutePerUser: 1_000_000,
    strangersPerMinutePerAddress: 1_000_000,
    sessionsPerSandbox: 10_000,
    outputBytesPerSecond: 2 ** 40,
  },
  sessionTokenMinutes: 60,
  tokenInUrl: true,
  commands: { free: 'exec-scope', templates: [{ id: 'nothing', title: 'Nothing', argv: ['true'] }] },
}

/** Exit code and standard error of a `sandwire up` that fails to start. */
async function refusal(env: Readonly<Record<string, string>>): Promise<{ code: number; text: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-open-'))
  const child = Bun.spawn([process.execPath, MAIN, 'up', '--port', '0', '--data', join(folder, 'data')], {
    env: { ...process.env, XDG_CONFIG_HOME: folder, ...env },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const [text, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
  rmSync(folder, { recursive: true, force: true })
  return { code, text }
}

describe('starting a public server', () => {
  test('fails without a way to authenticate users, and says what to configure (threat T4)', async () => {
    const { code, text } = await refusal({ SANDWIRE_BIND: '0.0.0.0' })
    expect(code).toBe(2)
    expect(text).toContain('set SANDWIRE_ISSUER, JWT_SECRET or API_TOKEN, or listen on 127.0.0.1')
  })

  test('fails with the reason when control rejects its settings', async () => {
    const settings = join(tmpdir(), `sandwire-settings-${crypto.randomUUID()}.json`)
    const issuers = [{ issuer: 'https://id.example', audience: 'a', algorithms: [] }]
    writeFileSync(settings, JSON.stringify({ issuers }), { mode: 0o600 })
    const { code, text } = await refusal({ SANDWIRE_SETTINGS: settings })
    rmSync(settings)
    expect(text).toContain('Cannot run control: Invalid settings: issuers.0.algorithms:')
    expect(code).not.toBe(0)
  })

  test('reports every configuration error and no secret (threat T2)', async () => {
    const { code, text } = await refusal({
      SANDWIRE_BIND: '0.0.0.0',
      SANDWIRE_PUBLIC_URL: 'http://sandwire.example',
      SANDWIRE_ISSUER: 'keycloak',
      SANDWIRE_ISOLATION: 'none',
      JWT_SECRET: 'CNRY-short',
    })
    expect(code).toBe(2)
    for (const word of ['SANDWIRE_PUBLIC_URL', '"domain" is missing', 'SANDWIRE_ISOLATION', 'JWT_SECRET'])
      expect(text).toContain(word)
    expect(text).not.toContain('CNRY-short')
  })
})

describe.skipIf(problem !== undefined)(
  `a public server${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let folder: string
    let issuer: TestIssuer
    let host: RunningHost
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'sandwire-open-'))
      issuer = await startIssuer()
      const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
      const made = Bun.spawnSync([
        'openssl',
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-keyout',
        key,
        '-out',
        certificate,
        '-days',
        '2',
        '-subj',
        '/CN=sandwire.example',
        '-addext',
        'subjectAltName=DNS:sandwire.example',
      ])
      if (!made.success) throw new Error(made.stderr.toString())
      const settings = join(folder, 'settings.json')
      const { audience } = issuer
      writeFileSync(
        settings,
        JSON.stringify({ issuers: [{ issuer: issuer.url, audience, name: 'Test' }], ...LARGEST }),
      )
      host = await startHost({
        env: {
          SANDWIRE_BIND: '0.0.0.0',
          SANDWIRE_PUBLIC_URL: PUBLIC,
          SANDWIRE_TLS_CERT: certificate,
          SANDWIRE_TLS_KEY: key,
          SANDWIRE_SETTINGS: settings,
          SANDWIRE_CLIENT_ADDRESS_HEADER: 'X-Forwarded-For',
        },
      })
    }, TIMEOUT_MS)
    afterAll(async () => {
      await host.stop()
      await issuer[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    })

    /** Sends a request under the public host name, and verifies the certificate against that name. */
    function sendRequest(
      path: string,
      bearer: string,
      init: { method?: string; headers?: Record<string, string>; body?: string } = {},
    ): Promise<Response> {
      const ca = readFileSync(join(folder, 'cert.pem'), 'utf8')
      const headers = { host: 'sandwire.example', authorization: `Bearer ${bearer}`, ...init.headers }
      return fetch(`https://127.0.0.1:${host.port}${path}`, {
        ...init,
        headers,
        tls: { ca, serverName: 'sandwire.example', checkServerIdentity: () => undefined },
      })
    }

    test('prints its address and issuers, and no sign-in link', () => {
      expect(host.output()).toContain(`Sandwire is running at ${PUBLIC}`)
      expect(host.output()).toContain(`Sign in    ${PUBLIC}/signin, with Test (${issuer.url})`)
      expect(host.output()).not.toContain('/signin#')
    })

    test('refuses the local token, and is not in the list of local servers', async () => {
      const response = await sendRequest('/api/whoami', host.token)
      expect(response.status).toBe(401)
      const known = await Bun.file(join(host.data, 'config', 'sandwire', 'servers.json')).exists()
      expect(known).toBe(false)
    })

    test('gives users of its issuer access to their own sandboxes', async () => {
      const ann = await issuer.mintToken('ann')
      const made = await sendRequest('/api/sandboxes', ann, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'dev' }),
      })
      expect(made.status).toBe(201)
      const ran = await sendRequest('/api/sandboxes/dev/exec', ann, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cmd: 'echo', args: ['hello'] }),
      })
      expect(await ran.json()).toMatchObject({ output: 'hello\n' })
      expect((await sendRequest('/api/sandboxes/dev', await issuer.mintToken('bob'))).status).toBe(404)
    })

    test('attaches under its public name, and audits the client address that the proxy sent (threat T50)', async () => {
      const bearer = await issuer.mintToken('ann')
      const options: unknown = {
        headers: {
          authorization: `Bearer ${bearer}`,
          host: 'sandwire.example',
          'x-forwarded-for': '203.0.113.9',
        },
        tls: { rejectUnauthorized: false },
      }
      const socket = new WebSocket(
        `wss://127.0.0.1:${host.port}/attach?sandbox=dev&cmd=echo&arg=hi`,
        options as string[],
      )
      socket.binaryType = 'arraybuffer'
      const said: string[] = []
      socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
        said.push(typeof data === 'string' ? data : new TextDecoder().decode(data).slice(1))
      })
      await eventually(() => said.some((each) => each.includes('"exit"')), {
        what: 'an exit',
      })
      expect(said).toContain('hi\n')
      const row = await eventually(
        async () => {
          const page = (await (await sendRequest('/api/audit?action=session.start', bearer)).json()) as {
            rows: { address: string }[]
          }
          return page.rows[0]
        },
        { what: 'the audit' },
      )
      expect(row.address).toBe('203.0.113.9')
    })

    test('tells browsers to use HTTPS under its public name only', async () => {
      const headerOf = async (name: string): Promise<string | null> =>
        (await sendRequest('/signin', '', { headers: { host: name } })).headers.get(
          'strict-transport-security',
        )
      expect(await headerOf('sandwire.example')).toBe('max-age=31536000')
      expect(await headerOf(`localhost:${host.port}`)).toBeNull()
    })

    test('refuses every other host name (threat T1)', async () => {
      for (const name of ['evil.example', `sandwire.example:${host.port}`, 'SANDWIRE.example.'])
        expect((await sendRequest('/api/auth', '', { headers: { host: name } })).status).toBe(421)
      const origin = { origin: `https://localhost:${host.port}` }
      expect((await sendRequest('/api/auth', '', { headers: origin })).status).toBe(403)
    })
  },
)
