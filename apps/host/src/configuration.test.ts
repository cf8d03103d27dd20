import { describe, expect, test } from 'bun:test'
import type { UpFlags } from './arguments.ts'
import {
  type Validated,
  type Configuration,
  validateConfiguration,
  validatePaths,
  type ConfigurationContext,
} from './configuration.ts'

const NO_FLAGS: UpFlags = { isQuiet: false, isNewToken: false, keepsSandboxes: false, acceptsMissing: false }
const FOLDERS = new Set([
  '/home/me',
  '/home/me/project',
  '/srv',
  '/opt',
  '/opt/sandwire',
  '/opt/sandwire/apps',
  '/opt/other',
  '/usr/bin',
  '/link',
  '/home/me/.config/sandwire',
])
const WRITABLE_FOLDERS = ['/opt/sandwire', '/usr/bin/bun', '/home/me/.config/sandwire']

const FILES: Record<string, string> = {}

function context(env: Record<string, string> = {}, links: Record<string, string> = {}): ConfigurationContext {
  return {
    env,
    cwd: '/home/me/project',
    home: '/home/me',
    realPath: (file) => {
      for (const [from, to] of Object.entries(links)) if (file.startsWith(from)) return file.replace(from, to)
      return file
    },
    isFolder: (file) => FOLDERS.has(file),
    folderProblem: (folder) =>
      folder.startsWith('/etc/passwd') ? '"/etc/passwd" is not a folder' : undefined,
    ownerOf: (file) => (file === '/srv' ? 0 : 1000),
    uid: 1000,
    ownPaths: WRITABLE_FOLDERS,
    readFile: (file) => FILES[file],
    readSecretFile: (file) => {
      const text = FILES[file]
      if (text === undefined) throw new Error('there is no such file')
      return text
    },
  }
}

function validate(flags: Partial<UpFlags>, env: Record<string, string> = {}): Validated<Configuration> {
  return validateConfiguration({ ...NO_FLAGS, ...flags }, context(env))
}

function problemsOf(validated: Validated<unknown>): readonly string[] {
  return validated.isOk ? [] : validated.problems
}

describe('validateConfiguration', () => {
  test('requires no setting', () => {
    expect(validate({})).toEqual({
      isOk: true,
      value: {
        dataFolder: '/home/me/project/.sandwire',
        port: 8787,
        addresses: ['127.0.0.1', '::1'],
        mode: 'local',
        issuers: [],
        secrets: {},
        credentials: {},
        upstreamUrls: [],
        passed: {},
        disk: { overcommit: 4, bytesPerSecond: 256 * 1024 ** 2 },
        connections: {},
        backupHours: 24,
        store: { folder: '/home/me/project/.sandwire/store' },
      },
    })
  })

  test.each(['/etc/passwd', '/etc/passwd/below'])('refuses the unusable data folder %s', (data) => {
    expect(problemsOf(validate({ data }))).toEqual([
      `Cannot use the data folder "${data}": "/etc/passwd" is not a folder; choose another with --data`,
    ])
  })

  test('reads the settings of the data disk', () => {
    const env = {
      SANDWIRE_DISK_RESERVE: '2G',
      SANDWIRE_DISK_OVERCOMMIT: '1.5',
      SANDWIRE_DISK_BANDWIDTH: '10M',
    }
    expect(validate({}, env)).toMatchObject({
      value: { disk: { reserveBytes: 2 * 1024 ** 3, overcommit: 1.5, bytesPerSecond: 10 * 1024 ** 2 } },
    })
    const bad = {
      SANDWIRE_DISK_RESERVE: '2 GB',
      SANDWIRE_DISK_OVERCOMMIT: '0.5',
      SANDWIRE_DISK_BANDWIDTH: 'fast',
    }
    expect(problemsOf(validate({}, bad))).toEqual([
      'SANDWIRE_DISK_RESERVE is "2 GB": give bytes, or a number with K, M, G or T',
      'SANDWIRE_DISK_OVERCOMMIT is "0.5": give a number from 1 to 1000',
      'SANDWIRE_DISK_BANDWIDTH is "fast": give bytes, or a number with K, M, G or T',
    ])
  })

  test('treats empty variables as unset', () => {
    expect(
      validate({}, { SANDWIRE_PORT: '', SANDWIRE_DATA: '', SANDWIRE_BIND: '', SANDWIRE_ISOLATION: '' }).isOk,
    ).toBe(true)
  })

  test.each(['http://127.0.0.1:9000', 'http://localhost:9000', 'https://localhost'])(
    'refuses the issuer %s on a public server, because browsers would resolve it to their own machine',
    (issuer) => {
      const tokens = { SANDWIRE_ISSUER: issuer, SANDWIRE_ISSUER_AUDIENCE: 'a' }
      const env = { ...tokens, SANDWIRE_ISSUER_CLIENT_ID: 'c' }
      expect(validate({}, env).isOk).toBe(true)
      // No browser is redirected to an issuer for these.
      expect(validate({}, { ...tokens, SANDWIRE_PUBLIC_URL: 'https://sandwire.example' }).isOk).toBe(true)
      expect(problemsOf(validate({}, { ...env, SANDWIRE_PUBLIC_URL: 'https://sandwire.example' }))).toEqual([
        expect.stringContaining(`The issuer "${issuer}" is on loopback`),
      ])
    },
  )

  test('prefers flags to the environment', () => {
    const validated = validate({ port: '1', data: '/a' }, { SANDWIRE_PORT: '2', SANDWIRE_DATA: '/b' })
    expect(validated).toMatchObject({ value: { port: 1, dataFolder: '/a' } })
  })

  test('resolves paths from the folder in which npm start was run', () => {
    const env = { npm_lifecycle_event: 'start', INIT_CWD: '/srv' }
    expect(validate({}, env)).toMatchObject({ value: { dataFolder: '/srv/.sandwire' } })
  })

  test('ignores INIT_CWD under npx, which does not change the folder', () => {
    const env = { npm_lifecycle_event: 'npx', INIT_CWD: '/srv' }
    expect(validate({}, env)).toMatchObject({ value: { dataFolder: '/home/me/project/.sandwire' } })
  })

  test('reports every problem at once, each with a remedy', () => {
    const env = {
      SANDWIRE_PORT: 'x',
      SANDWIRE_BIND: '0.0.0.0',
      SANDWIRE_ISOLATION: 'docker',
      WORKSPACE_MODE: 'remote',
    }
    expect(problemsOf(validate({ workspace: '/nowhere' }, env))).toEqual([
      'WORKSPACE_MODE is "remote": set it to local or sandbox, or unset it',
      'The workspace "/nowhere" is not a folder: choose an existing one with --workspace',
      'SANDWIRE_PORT is "x": give a whole number from 0 to 65535',
      'SANDWIRE_BIND is "0.0.0.0": no authentication is configured for other users; set SANDWIRE_ISSUER, JWT_SECRET or API_TOKEN, or listen on 127.0.0.1',
      'SANDWIRE_PUBLIC_URL is not set: set it to the public origin, such as https://sandwire.example, which every request is checked against',
      'SANDWIRE_ISOLATION is "docker": set it to bubblewrap or none, or unset it',
      'A served folder is only for the local user: remove --workspace and WORKSPACE_MODE, or listen on loopback only',
    ])
  })

  test.each(['-1', '65536', '1e3', '0x10', ' 80', '8080 ', '999999'])('refuses port "%s"', (port) => {
    expect(problemsOf(validate({ port }))).toHaveLength(1)
  })

  test.each(['0.0.0.0', '::', '*', '192.168.0.1', 'example.com', '127.0.0.2', 'constructor'])(
    'refuses to bind to %s without authentication for other users',
    (bind) => {
      const env = { SANDWIRE_BIND: bind, SANDWIRE_PUBLIC_URL: 'https://sandwire.example' }
      expect(problemsOf(validate({}, env))).toContainEqual(expect.stringContaining('SANDWIRE_BIND'))
    },
  )

  test('serves a folder with its data elsewhere', () => {
    const validated = validate({ workspace: '.' })
    expect(validated).toMatchObject({ value: { workspace: '/home/me/project' } })
    expect(validated.isOk && validated.value.dataFolder).toMatch(
      /^\/home\/me\/\.local\/state\/sandwire\/[0-9a-f]{12}$/,
    )
  })

  test('serves only a folder of the current user', () => {
    expect(problemsOf(validate({ workspace: '/srv' }))).toEqual([
      expect.stringContaining('belongs to user 0'),
    ])
  })

  test.each([
    '/opt',
    '/opt/sandwire',
    '/opt/sandwire/apps',
    '/usr/bin',
    '/home/me',
    '/home/me/.config/sandwire',
  ])('does not serve %s, which contains files that this program runs or trusts (threat T38)', (workspace) => {
    expect(problemsOf(validate({ workspace, data: '/data' }))).toEqual([
      expect.stringMatching(/own program or settings.* npx sandwire up --workspace DIR$/),
    ])
  })

  test('resolves links to the program', () => {
    const links = { '/opt/sandwire': '/link/program' }
    const validated = validatePaths({ workspace: '/link', data: '/data' }, context({}, links))
    expect(problemsOf(validated)).toEqual([expect.stringContaining('own program or settings')])
  })

  test('serves a folder beside the program', () => {
    expect(validate({ workspace: '/opt/other' }).isOk).toBe(true)
  })

  test('explains why npm start cannot serve the program’s own folder', () => {
    const env = { WORKSPACE_MODE: 'local', npm_lifecycle_event: 'start', INIT_CWD: '/opt/sandwire' }
    expect(problemsOf(validate({}, env))).toEqual([
      expect.stringContaining('npx sandwire up --workspace DIR'),
    ])
  })

  test('serves the current folder under WORKSPACE_MODE=local', () => {
    expect(validate({}, { WORKSPACE_MODE: 'local' })).toMatchObject({
      value: { workspace: '/home/me/project' },
    })
  })

  test.each(['.sandwire', '.', 'a/b', '..data'])('refuses data folder %s inside the workspace', (data) => {
    expect(problemsOf(validate({ workspace: '.', data }))).toEqual([
      expect.stringContaining('is inside the workspace'),
    ])
  })

  test('resolves links to a data folder inside the workspace', () => {
    const validated = validatePaths(
      { workspace: '/home/me/project', data: '/link/data' },
      context({}, { '/link': '/home/me/project' }),
    )
    expect(problemsOf(validated)).toEqual([expect.stringContaining('is inside the workspace')])
  })

  test('refuses a workspace inside the data folder', () => {
    expect(problemsOf(validate({ workspace: '/home/me/project', data: '/home/me' }))).toHaveLength(1)
  })

  test('accepts a data folder whose name starts with the workspace’s', () => {
    expect(validate({ workspace: '/home/me/project', data: '/home/me/project-data' }).isOk).toBe(true)
    expect(validate({ workspace: '/home/me/project', data: '/home/me/..data' }).isOk).toBe(true)
  })

  test('is open with an issuer, and then requires bubblewrap', () => {
    const env = {
      SANDWIRE_ISSUER: 'keycloak',
      SANDWIRE_ISSUER_DOMAIN: 'id.example',
      SANDWIRE_ISSUER_REALM: 'a',
      SANDWIRE_ISSUER_AUDIENCE: 'sandwire',
      SANDWIRE_BIND: '0.0.0.0',
      SANDWIRE_PUBLIC_URL: 'https://sandwire.example',
    }
    expect(validate({}, env)).toMatchObject({
      value: {
        mode: 'open',
        addresses: ['0.0.0.0'],
        publicOrigin: 'https://sandwire.example',
        isolation: 'bubblewrap',
        issuers: [{ issuer: 'https://id.example/realms/a' }],
      },
    })
    expect(problemsOf(validate({}, { ...env, SANDWIRE_ISOLATION: 'none' }))).toEqual([
      expect.stringContaining('would run commands as you'),
    ])
    expect(problemsOf(validate({ workspace: '.' }, env))).toEqual([
      expect.stringContaining('only for the local user'),
    ])
  })

  test('stays local with an issuer on loopback', () => {
    const env = { SANDWIRE_ISSUER: 'google', SANDWIRE_ISSUER_CLIENT_ID: 'c' }
    expect(validate({}, env)).toMatchObject({ value: { mode: 'local', isolation: 'bubblewrap' } })
    expect(problemsOf(validate({}, { ...env, SANDWIRE_ISOLATION: 'none' }))).toEqual([
      expect.stringContaining('everyone who signs in'),
    ])
  })

  test('reads issuers and settings of control from the settings file', () => {
    FILES['/etc/sandwire.json'] = JSON.stringify({
      issuers: [{ issuer: 'https://id.example', audience: 'sandwire' }],
      limits: { sessionsPerSandbox: 3 },
    })
    const found = validateConfiguration(NO_FLAGS, {
      ...context({ SANDWIRE_SETTINGS: '/etc/sandwire.json' }),
      ownerOf: () => 1000,
    })
    expect(found).toMatchObject({
      value: { issuers: [{ issuer: 'https://id.example' }], passed: { limits: { sessionsPerSandbox: 3 } } },
    })
  })

  test('reads limits on connections from the settings file', () => {
    const read = (connections: unknown) => {
      FILES['/etc/sandwire.json'] = JSON.stringify({ connections })
      const env = context({ SANDWIRE_SETTINGS: '/etc/sandwire.json' })
      return validateConfiguration(NO_FLAGS, { ...env, ownerOf: () => 1000 })
    }
    expect(read({ total: 500, perAddress: 20 })).toMatchObject({
      value: { connections: { total: 500, perAddress: 20 }, passed: {} },
    })
    expect(problemsOf(read({ total: 0 }))).toEqual([
      '"/etc/sandwire.json": connections: "total" must be a whole number from 1 to 1000000',
    ])
  })

  test('rejects a settings file inside the workspace (threat T38)', () => {
    const env = { SANDWIRE_SETTINGS: '/home/me/project/settings.json' }
    expect(problemsOf(validate({ workspace: '.' }, env))).toContainEqual(
      expect.stringContaining('is inside the workspace'),
    )
  })
})
