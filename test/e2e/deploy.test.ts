import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { rejectionOf } from '@sandwire/testing'
import { Miniflare } from 'miniflare'
import { configure, readWranglerFile } from '../../deploy/cloudflare/configuration.ts'
import { ensureSecrets, prepareDeployment } from '../../deploy/cloudflare/deployment.ts'
import { chooseSecrets, takeGivenSecrets } from '../../deploy/cloudflare/secrets.ts'
import { openCloudflareApi } from './support/cloudflare-api.ts'

const ROOT = resolve(import.meta.dir, '../..')
const HOST = 'sandwire.example.workers.dev'
const SETTINGS = { url: `https://${HOST}` }
/** Requests that one address may make without a valid credential. */
const UNAUTHENTICATED_REQUESTS = 5
const GENERATED_SECRETS = ['API_TOKEN', 'SANDWIRE_ID_KEY', 'SANDWIRE_SIGNING_KEY', 'SESSION_TOKEN_SECRET']
/** The image is compiled for the machine that deploys. */
const canBuild = process.platform === 'linux' && process.arch === 'x64'
const TOKEN_FILE = join(ROOT, '.sandwire/deploy', `${HOST}.token`)

/** Runs `npm run deploy` without the machine's own Cloudflare login. */
async function deploy(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'sandwire-deploy-'))
  try {
    const settings = join(folder, 'settings.json')
    await writeFile(settings, JSON.stringify(SETTINGS))
    const argv = [process.execPath, join(ROOT, 'scripts/deploy.ts'), ...args, '--settings', settings]
    const child = Bun.spawn(argv, {
      env: { PATH: process.env['PATH'], HOME: folder, ...env },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr, status] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    return { stdout, stderr, status }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

describe('npm run deploy', () => {
  test.skipIf(!canBuild)(
    'uploads generated keys once, the Worker and the image, and fails when the URL does not respond',
    async () => {
      await using api = openCloudflareApi()
      const tools = await mkdtemp(join(tmpdir(), 'sandwire-tools-'))
      const log = join(tools, 'log')
      try {
        await symlink(join(import.meta.dir, 'support/stand-in-docker.sh'), join(tools, 'docker'))
        const PATH = `${tools}:${process.env['PATH']}`
        const result = await deploy([], { ...api.env, PATH, STAND_IN_DOCKER_LOG: log })
        // Everything succeeded except the request to the URL, which does not exist.
        expect(result.stdout).toContain('FAIL  healthz')
        expect(result.stderr).toContain('failed at healthz')
        expect(result.status).toBe(1)

        expect([...api.secrets.keys()].sort()).toEqual(GENERATED_SECRETS)
        expect((await readFile(TOKEN_FILE, 'utf8')).trim()).toBe(api.secrets.get('API_TOKEN') ?? '')
        expect((await stat(TOKEN_FILE)).mode & 0o777).toBe(0o600)
        expect([...api.buckets]).toEqual(['sandwire-files'])

        const { metadata = {} } = api.worker() ?? {}
        expect(metadata).toMatchObject({
          main_module: 'worker.js',
          containers: [{ class_name: 'SandboxObject' }],
          migrations: {
            steps: [
              { new_sqlite_classes: ['SandboxObject', 'AccountObject'] },
              { new_sqlite_classes: ['MachineObject'] },
              { new_sqlite_classes: ['GatewayGrantObject'] },
              { new_sqlite_classes: ['ClaudeSandbox'] },
              { new_sqlite_classes: ['ConversationObject'] },
            ],
          },
        })
        const image = expect.stringMatching(/\/sandwire-sandboxobject@sha256:a{64}$/)
        expect(api.applications).toMatchObject([
          {
            configuration: { image, instance_type: 'basic' },
            max_instances: 100,
            durable_objects: { namespace_id: 'sandboxes' },
          },
        ])

        // The workbench is uploaded with the Worker, including every file that its page references.
        const page = api.assets.get('/index.html') ?? ''
        const named = Array.from(page.matchAll(/(?:src|href)="([^"]+)"/g), ([, file]) => file ?? '')
        expect(named.length).toBeGreaterThan(1)
        for (const file of named) expect(api.assets.get(file)?.length).toBeGreaterThan(0)
        expect(metadata).toMatchObject({ assets: { jwt: expect.any(String) } })

        const asked = await readFile(log, 'utf8')
        expect(asked).toContain(join(ROOT, '.cache/sandbox-image'))
        const said = [
          result.stdout,
          result.stderr,
          asked,
          JSON.stringify([metadata, api.applications]),
        ].join()
        for (const secret of api.secrets.values()) expect(said).not.toContain(secret)

        // Sandbox ids and running sandboxes depend on the keys, so a second deployment keeps them.
        const before = new Map(api.secrets)
        const added = { JWT_SECRET: 'j'.repeat(32), ANTHROPIC_API_KEY: 'sk-ant-canary-of-a-deployment' }
        const again = await deploy(['--worker-only'], { ...api.env, ...added })
        expect(again.stdout).toContain('uploaded JWT_SECRET, ANTHROPIC_API_KEY\n')
        expect(Object.fromEntries(api.secrets)).toEqual({ ...Object.fromEntries(before), ...added })
        for (const secret of Object.values(added)) expect(again.stdout + again.stderr).not.toContain(secret)
        expect(api.applications.length).toBe(1)
      } finally {
        await rm(TOKEN_FILE, { force: true })
        await rm(tools, { recursive: true, force: true })
      }
    },
    120_000,
  )

  test('generates no keys when the existing secrets cannot be listed', async () => {
    await using api = openCloudflareApi('GET /workers/scripts/sandwire/')
    const settings = join(await mkdtemp(join(tmpdir(), 'sandwire-deploy-')), 'settings.json')
    await writeFile(settings, JSON.stringify(SETTINGS))
    const deployment = await prepareDeployment({ settingsFile: settings, mayBeNowhere: true })
    Object.assign(process.env, api.env)
    try {
      const failure = await rejectionOf(ensureSecrets(deployment, {}))
      expect(failure).toMatchObject({ message: expect.stringContaining('Cannot list the secrets') })
      expect(api.secrets.size).toBe(0)
    } finally {
      for (const name of Object.keys(api.env)) delete process.env[name]
      await rm(dirname(settings), { recursive: true, force: true })
    }
  })

  test('fails a dry run when the settings file is missing or invalid', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sandwire-deploy-'))
    const prepare = (name: string): Promise<unknown> =>
      rejectionOf(prepareDeployment({ settingsFile: join(folder, name), mayBeNowhere: true }))
    try {
      expect(await prepare('typo.json')).toMatchObject({ message: expect.stringContaining('typo.json') })
      await writeFile(join(folder, 'text.json'), 'url: here')
      expect(await prepare('text.json')).toMatchObject({ message: expect.stringContaining('text.json') })
      expect(await prepare('.')).toMatchObject({ message: expect.stringContaining(basename(folder)) })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('rejects --dry-run together with --worker-only', async () => {
    const result = await deploy(['--dry-run', '--worker-only'])
    expect(result).toMatchObject({ status: 2, stdout: '' })
    expect(result.stderr).toContain('not both')
  })

  test('changes nothing when it cannot build the image', async () => {
    await using api = openCloudflareApi()
    const result = await deploy([], { ...api.env, PATH: join(ROOT, 'no-such-folder') })
    expect(result).toMatchObject({ status: 1, stdout: '' })
    expect(result.stderr).toContain('Cannot build the image')
    expect(api.calls).toEqual([])
  })

  test('changes nothing when Cloudflare is not logged in', async () => {
    await using api = openCloudflareApi()
    const result = await deploy(['--worker-only'], { ...api.env, CLOUDFLARE_API_TOKEN: 'wrong' })
    expect(result).toMatchObject({ status: 1, stdout: '' })
    expect(result.stderr).toContain('nobody is logged in')
    expect(api.calls).toEqual([])
  })
})

describe('secrets of a deployment', () => {
  test("are generated only when missing, and replaced only by the operator's values", async () => {
    const first = await chooseSecrets([], {})
    expect(Object.keys(first).sort()).toEqual(GENERATED_SECRETS)
    expect(await chooseSecrets(Object.keys(first), {})).toEqual({})
    const given = takeGivenSecrets({
      JWT_SECRET: 'j'.repeat(32),
      SANDWIRE_ID_KEY: 'not this way',
      PATH: '/bin',
    })
    expect(await chooseSecrets(Object.keys(first), given)).toEqual({ JWT_SECRET: 'j'.repeat(32) })
    const tooShort = await rejectionOf(chooseSecrets([], { JWT_SECRET: 'short' }))
    expect(tooShort).toMatchObject({ message: expect.stringContaining('JWT_SECRET is shorter') })
    expect(await rejectionOf(chooseSecrets([], { SESSION_TOKEN_SECRET: 'k1:short' }))).toBeInstanceOf(Error)
  })

  test('of agents are those that the settings name, from variables and files, and leave the environment', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sandwire-deploy-'))
    try {
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
      const file = join(folder, 'app.pem')
      // As GitHub issues it; Workers need PKCS #8.
      await writeFile(file, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
      const env: Record<string, string | undefined> = {
        ANTHROPIC_API_KEY: 'sk-ant-of-the-operator',
        GITHUB_APP_ID: '42',
        GITHUB_APP_PRIVATE_KEY_FILE: file,
        MINE_API_KEY: 'key-of-another-api',
        OTHER_API_KEY: 'not in the settings',
      }
      const prices = { '*': { input: 1, output: 2 } }
      const provider = {
        id: 'mine',
        api: 'openai',
        baseUrl: 'https://llm.example/v1',
        secret: 'MINE_API_KEY',
        prices,
      }
      const given = takeGivenSecrets(env, { credentials: { providers: [provider] } })
      expect(given).toEqual({
        ANTHROPIC_API_KEY: 'sk-ant-of-the-operator',
        GITHUB_APP_ID: '42',
        GITHUB_APP_PRIVATE_KEY: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
        MINE_API_KEY: 'key-of-another-api',
      })
      expect(Object.keys(env)).toEqual(['GITHUB_APP_PRIVATE_KEY_FILE', 'OTHER_API_KEY'])
      await chmod(file, 0o644)
      const local = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:8080' }
      expect(() =>
        takeGivenSecrets({ ...local, GITHUB_APP_PRIVATE_KEY_FILE: file, GITHUB_APP_ID: '1' }),
      ).toThrow(
        /GITHUB_APP_PRIVATE_KEY_FILE is .*; http:\/\/127.0.0.1:8080 cannot be reached from Cloudflare/,
      )
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe('the bundle of a dry run', () => {
  let miniflare: Miniflare
  let port: number
  const secrets: Record<string, string> = {}

  /** The Worker on its own socket, as the edge reaches it. */
  const ask = (path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers)
    headers.set('host', HOST)
    if (!headers.has('cf-connecting-ip')) headers.set('cf-connecting-ip', '203.0.113.9')
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${secrets['API_TOKEN']}`)
    return fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers })
  }

  beforeAll(async () => {
    // Without an account and network: nothing listens at the API's address.
    const nowhere = {
      CLOUDFLARE_API_BASE_URL: 'http://127.0.0.1:9/client/v4',
      HTTPS_PROXY: 'http://127.0.0.1:9',
    }
    const result = await deploy(['--dry-run'], { ...nowhere, CLAUDE_CODE_OAUTH_TOKEN: 'oauth-canary' })
    expect(result).toMatchObject({ status: 0, stderr: '' })
    expect(result.stdout).toContain('secrets of this environment: CLAUDE_CODE_OAUTH_TOKEN\n')
    expect(result.stdout).not.toContain('oauth-canary')
    Object.assign(secrets, await chooseSecrets([], {}))
    const { vars, assets } = configure(await readWranglerFile(), {
      ...SETTINGS,
      control: { limits: { strangersPerMinutePerAddress: UNAUTHENTICATED_REQUESTS } },
    })
    const script = await readFile(join(ROOT, '.cache/deploy/dry-run/worker.js'), 'utf8')
    const free = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
    port = free.port
    free.stop(true)
    miniflare = new Miniflare({
      modules: [{ type: 'ESModule', path: 'worker.js', contents: script }],
      modulesRoot: '/',
      compatibilityDate: '2026-07-01',
      compatibilityFlags: ['no_web_socket_compression', 'nodejs_compat', 'no_nodejs_compat_v2'],
      durableObjects: {
        SANDBOX: { className: 'SandboxObject', useSQLite: true },
        ACCOUNT: { className: 'AccountObject', useSQLite: true },
        MACHINE: { className: 'MachineObject', useSQLite: true },
        GATEWAY_GRANT: { className: 'GatewayGrantObject', useSQLite: true },
        CLAUDE_SANDBOX: { className: 'ClaudeSandbox', useSQLite: true },
        CONVERSATION: { className: 'ConversationObject', useSQLite: true },
      },
      bindings: { ...vars, ...secrets },
      assets: {
        directory: assets.directory,
        binding: assets.binding,
        routerConfig: {
          has_user_worker: true,
          invoke_user_worker_ahead_of_assets: assets.run_worker_first,
        },
        assetConfig: {
          html_handling: assets.html_handling,
          not_found_handling: assets.not_found_handling,
        },
      },
      unsafeDirectSockets: [{ host: '127.0.0.1', port }],
      handleRuntimeStdio: () => undefined,
    })
    await miniflare.ready
  })
  afterAll(() => miniflare.dispose())

  test('serves control by its default export', async () => {
    expect(await (await ask('/healthz')).json()).toMatchObject({ status: 'ok' })
    expect(await (await ask('/api/whoami')).json()).toMatchObject({
      scopes: expect.arrayContaining(['exec']),
    })
  })

  test('serves the workbench with its policy, and its assets as immutable', async () => {
    const page = await ask('/')
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
    const [script = ''] = /\/assets\/[^"]+\.js/.exec(await page.text()) ?? []
    const answer = await ask(script)
    expect(answer).toMatchObject({ status: 200 })
    expect(answer.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(answer.headers.get('cache-control')).toContain('immutable')
    expect((await answer.text()).length).toBeGreaterThan(10_000)
    // Nothing but the page and its assets is served.
    for (const path of ['/index.html', '/assets/no-such-file.js', `${script}.map`])
      expect(await ask(path)).toMatchObject({ status: 404 })
  })

  test('serves only its own host name, and only requests with a credential', async () => {
    const other = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { host: 'elsewhere.example' } })
    expect(await other.json()).toMatchObject({ error: { code: 'host_refused' } })
    const stranger = await ask('/api/sandboxes', { headers: { authorization: 'Bearer nothing' } })
    expect(await stranger.json()).toMatchObject({ error: { code: 'unauthorized' } })
  })

  test('identifies clients by the address that the edge reports', async () => {
    const codeOf = async (address: string): Promise<unknown> => {
      const headers = { authorization: 'Bearer nothing', 'cf-connecting-ip': address }
      const { error } = (await (await ask('/api/sandboxes', { headers })).json()) as {
        error: { code: string }
      }
      return error.code
    }
    for (let count = 0; count < UNAUTHENTICATED_REQUESTS; count++)
      expect(await codeOf('198.51.100.1')).toBe('unauthorized')
    expect(await codeOf('198.51.100.1')).toBe('too_many_from_address')
    expect(await codeOf('198.51.100.2')).toBe('unauthorized')
    expect(await codeOf('2001:db8::1')).toBe('unauthorized')
  })
})
