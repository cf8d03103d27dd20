import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CommandRun, runInProcess } from './in-process.ts'

const TOKEN = `swl_${'t'.repeat(43)}`
const ID = '0123456789abcdefghjkmnpqrstvwxyz'
const SESSION = `${ID}.0123456789abcdefghjkmnpqrs`

const SANDBOX = {
  id: ID,
  name: 'dev',
  state: 'running',
  reason: null,
  createdMs: Date.now() - 3.5 * 3_600_000,
  startedMs: Date.now() - 60_000,
  lastActivityMs: Date.now() - 2.5 * 3_600_000,
  sleepAfterSeconds: 600,
  ephemeral: false,
  network: { policy: 'allowlist', allow: ['good.com'] },
  limits: { memoryBytes: 1, pids: 1, milliCpus: 1, diskBytes: 1 },
  env: [],
}
const RUNNING = {
  id: SESSION,
  sandbox: ID,
  sandboxName: 'dev',
  state: 'running',
  mode: 'pty',
  cmd: 'bash\x1b[31m-l',
  attachments: 2,
  lastInputMs: null,
  lastOutputMs: Date.now() - 5.5 * 3_600_000,
  keepSeconds: 60,
  exit: null,
}

/** A request to the stand-in for control. */
interface ReceivedRequest {
  readonly what: string
  readonly authorization: string | null
  readonly body: string
}

let folder: string
let server: ReturnType<typeof Bun.serve>
let url: string
let env: Record<string, string | undefined>
let requests: ReceivedRequest[]
/** Answers by method and path; what is not here is 404. */
let answers: Record<string, () => Response>

function refuse(status: number, code: string, message: string): Response {
  return Response.json({ error: { code, message, request_id: 'r1' } }, { status })
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-commands-'))
  requests = []
  answers = {
    'GET /api/sandboxes': () => Response.json({ sandboxes: [SANDBOX] }),
    'GET /api/account/sessions': () => Response.json({ sessions: [RUNNING] }),
  }
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const what = `${request.method} ${pathname}${search}`
      const authorization = request.headers.get('authorization')
      requests.push({ what, authorization, body: await request.text() })
      if (authorization !== `Bearer ${TOKEN}`) return refuse(401, 'unauthorized', 'Cannot let this token in')
      return answers[what]?.() ?? refuse(404, 'not_found', 'No such route')
    },
  })
  url = `http://127.0.0.1:${server.port}`
  env = { XDG_CONFIG_HOME: folder, SBX_URL: undefined, SBX_TOKEN: undefined }
  await mkdir(join(folder, 'sandwire'), { mode: 0o700 })
  await writeFile(join(folder, 'local-token'), TOKEN, { mode: 0o600 })
  await know(url)
})

afterEach(async () => {
  await server.stop(true)
  await rm(folder, { recursive: true })
})

async function know(...urls: readonly string[]): Promise<void> {
  const servers = urls.map((each) => ({ url: each, tokenFile: join(folder, 'local-token') }))
  await writeFile(join(folder, 'sandwire/servers.json'), JSON.stringify({ servers }), { mode: 0o600 })
}

function cli(...argv: readonly string[]): Promise<CommandRun> {
  return runInProcess(argv, { env })
}

test('list finds the server and token of this machine', async () => {
  const run = await cli('list')
  expect(run).toMatchObject({ code: 0, stderr: '' })
  expect(run.stdout.toString()).toBe(
    'NAME  STATE    NETWORK        AGE  LAST ACTIVE  SAVED  ID\n' +
      `dev   running  allowlist (1)  3h   2h           -      ${ID}\n`,
  )
  for (const [saved, shown] of [
    [{ state: 'idle', savedMs: Date.now() - 3_000, error: null }, '3s ago'],
    [{ state: 'pending', savedMs: Date.now() - 3_000, error: null }, 'saving'],
    [{ state: 'retrying', savedMs: null, error: 'store_unavailable' }, 'no (store_unavailable)'],
  ] as const) {
    answers['GET /api/sandboxes'] = () => Response.json({ sandboxes: [{ ...SANDBOX, saved }] })
    expect((await cli('list')).stdout.toString()).toContain(shown)
  }
  const open = { ...SANDBOX, isolation: 'none', network: { policy: 'none', allow: [] } }
  answers['GET /api/sandboxes'] = () => Response.json({ sandboxes: [open] })
  expect((await cli('list')).stdout.toString()).toContain('dev   running  open (not enforced)  3h')
  answers['GET /api/sandboxes'] = () => Response.json({ sandboxes: [SANDBOX] })
  const json = await cli('list', '--json')
  expect(JSON.parse(json.stdout.toString())).toEqual({ sandboxes: [SANDBOX] })
})

test('create sends the options and prints the name', async () => {
  answers['POST /api/sandboxes'] = () => Response.json(SANDBOX, { status: 201 })
  const run = await cli('create', 'dev', '--allow', 'set:npm', '--memory', '1G', '--env', 'A=b')
  expect(run).toMatchObject({
    code: 0,
    stderr: `sbx-stdio: attach with: npx sbx-stdio ${url} --sandbox dev\n`,
  })
  expect(run.stdout.toString()).toBe('dev\n')
  expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
    name: 'dev',
    network: { policy: 'allowlist', allow: ['set:npm'] },
    limits: { memoryBytes: 1024 ** 3 },
    env: { A: 'b' },
  })
})

test('usage prints what the account uses against its limits', async () => {
  const USAGE = {
    account: {
      sandboxes: { used: 3, limit: 100 },
      running: { used: 1, limit: 5 },
      sessions: { used: 12, limit: null },
      memoryBytes: { used: 1024 ** 3, limit: 8.5 * 1024 ** 3 },
      milliCpus: { used: 1_500, limit: null },
    },
    sandbox: {
      memoryBytes: 512 * 1024 ** 2,
      sessions: 1_000,
      networks: ['none', 'allowlist'],
      idleSeconds: 3_600,
    },
    defaults: { network: 'none', idleSeconds: 600 },
  }
  answers['GET /api/account/usage'] = () => Response.json(USAGE)
  const run = await cli('usage')
  expect(run).toMatchObject({
    code: 0,
    stderr: 'sbx-stdio: networks: none, allowlist; idle before a sandbox stops: at most 3600 s\n',
  })
  expect(run.stdout.toString()).toBe(
    '                   USED  LIMIT  PER SANDBOX\n' +
      'sandboxes          3     100    -\n' +
      'running sandboxes  1     5      -\n' +
      'sessions           12    -      1000\n' +
      'memory             1G    8.5G   512M\n' +
      'CPUs               1.5   -      -\n',
  )
  expect(JSON.parse((await cli('usage', '--json')).stdout.toString())).toEqual(USAGE)
})

test('a refusal for a ceiling is one line, with the command that shows the ceilings', async () => {
  const message = 'Cannot create the sandbox: a sandbox may have at most 8 GiB of memory (requested: 1 TiB)'
  answers['POST /api/sandboxes'] = () => {
    const details = { ceiling: 'sandbox.memoryBytes', field: 'limits.memoryBytes', limit: 1, asked: 2 }
    const error = { code: 'ceiling_exceeded', message, request_id: 'r1', ...details }
    return Response.json({ error }, { status: 429 })
  }
  const { code, stderr } = await cli('create', 'dev', '--memory', '1T')
  expect(code).toBe(255)
  expect(stderr).toBe(`sbx-stdio: ${message}\nhint: see what you use and may use: npx sbx-stdio usage\n`)
})

test('start and stop print the new state', async () => {
  answers['POST /api/sandboxes/dev/start'] = () => Response.json(SANDBOX)
  answers['POST /api/sandboxes/dev/stop'] = () =>
    refuse(409, 'needs_discard', 'Cannot stop "dev": its files would be lost')
  answers['POST /api/sandboxes/dev/stop?discard=1'] = () => Response.json({ ...SANDBOX, state: 'stopped' })
  expect(await cli('start', 'dev')).toMatchObject({ code: 0, stderr: 'sbx-stdio: dev is running\n' })
  const refused = await cli('stop', 'dev')
  expect(refused.code).toBe(255)
  expect(refused.stderr).toBe(
    'sbx-stdio: Cannot stop "dev": its files would be lost\n' +
      'hint: to stop it and lose its files: npx sbx-stdio stop dev --discard\n',
  )
  expect(await cli('stop', 'dev', '--discard')).toMatchObject({
    code: 0,
    stderr: 'sbx-stdio: dev is stopped\n',
  })
  const json = await cli('stop', 'dev', '--discard', '--json')
  expect(JSON.parse(json.stdout.toString())).toMatchObject({ state: 'stopped' })
})

describe('rm', () => {
  beforeEach(() => {
    answers['DELETE /api/sandboxes/dev'] = () => new Response(null, { status: 204 })
  })

  test('requires --force without a terminal', async () => {
    const run = await cli('rm', 'dev')
    expect(run.code).toBe(2)
    expect(run.stderr).toContain('hint: npx sbx-stdio rm dev --force\n')
    expect(requests).toEqual([])
    expect(await cli('rm', 'dev', '--force')).toMatchObject({
      code: 0,
      stderr: 'sbx-stdio: dev removed\n',
    })
    expect((await cli('rm', 'dev', '--force', '--json')).stdout.toString()).toBe('{}\n')
  })
})

test('sessions lists sessions without escapes, and the command to attach (threat T24)', async () => {
  const run = await cli('sessions')
  expect(run.stdout.toString()).toBe(
    `SESSION${' '.repeat(54)}SANDBOX  COMMAND      STATE    ATTACHED  LAST ACTIVE\n` +
      `${SESSION}  dev      bash [31m-l  running  2         5h\n`,
  )
  expect(run.stderr).toBe(`sbx-stdio: attach with: npx sbx-stdio ${url} --session ${SESSION}\n`)
  answers['GET /api/sandboxes/other'] = () => Response.json({ ...SANDBOX, name: 'other' })
  expect(await cli('sessions', 'other')).toMatchObject({ code: 0, stderr: 'sbx-stdio: no sessions\n' })
  expect((await cli('sessions', '--json')).stdout.toString()).toContain('bash\\u001b[31m-l')
})

test('sessions shows the newest first', async () => {
  const ages = [5, 1, undefined, 3]
  const many = ages.map((age, at) => ({
    ...RUNNING,
    id: `${ID}.${at}123456789abcdefghjkmnpqrs`,
    cmd: `age ${age}`,
    createdMs: age === undefined ? null : Date.now() - age * 3_600_000,
  }))
  answers['GET /api/account/sessions'] = () => Response.json({ sessions: many })
  const { stdout } = await cli('sessions')
  expect(stdout.toString().match(/age \w+/g)).toEqual(['age 1', 'age 3', 'age 5', 'age undefined'])
})

describe('a prefix of a session id', () => {
  const OTHER = `${ID}.0123999999abcdefghjkmnpqrs`
  beforeEach(() => {
    answers['GET /api/account/sessions'] = () =>
      Response.json({ sessions: [RUNNING, { ...RUNNING, id: OTHER }] })
    answers[`DELETE /api/account/sessions/${SESSION}`] = () => new Response(null, { status: 204 })
  })

  test('is completed if it is unique, with or without the sandbox', async () => {
    answers[`DELETE /api/account/sessions/${OTHER}`] = () => new Response(null, { status: 204 })
    for (const prefix of [`${ID}.01234`, '012399']) expect((await cli('kill', prefix)).code).toBe(0)
    expect(requests.map(({ what }) => what).filter((what) => what.startsWith('DELETE'))).toEqual([
      `DELETE /api/account/sessions/${SESSION}`,
      `DELETE /api/account/sessions/${OTHER}`,
    ])
    answers['POST /api/grants'] = () => refuse(403, 'forbidden', 'no')
    await cli('share', '--session', `${ID}.01234`)
    expect(JSON.parse(requests.at(-1)?.body ?? '{}')).toMatchObject({ sandbox: ID, session: SESSION })
  })

  test('is refused if it matches several sessions, or none', async () => {
    expect(await cli('kill', `${ID}.0123`)).toMatchObject({
      code: 2,
      stderr: `sbx-stdio: Several session ids start with "${ID}.0123"\nhint: npx sbx-stdio sessions\n`,
    })
    expect((await cli('kill', 'zzzz')).stderr).toStartWith('sbx-stdio: No session id starts with "zzzz"\n')
    expect(requests.some(({ what }) => what.startsWith('DELETE'))).toBe(false)
  })
})

test('sessions of a sandbox that does not exist is an error', async () => {
  answers['GET /api/sandboxes/nope'] = () => refuse(404, 'sandbox_not_found', 'No sandbox has this name')
  for (const options of [[], ['--json']])
    expect(await cli('sessions', 'nope', ...options)).toMatchObject({
      code: 255,
      stderr: 'sbx-stdio: No sandbox has this name\nhint: list your sandboxes: npx sbx-stdio list\n',
    })
})

test('kill ends a session', async () => {
  answers[`DELETE /api/account/sessions/${SESSION}`] = () => Response.json(RUNNING, { status: 202 })
  expect(await cli('kill', SESSION)).toMatchObject({
    code: 0,
    stderr: 'sbx-stdio: ending the session\n',
  })
  expect(await cli('kill', '../../sandboxes/dev')).toMatchObject({ code: 2 })
  expect(requests).toHaveLength(1)
})

test('logs prints formatted lines, or JSON lines', async () => {
  const lines = ['{"time":"T1","level":"info","event":"started"}']
  answers['GET /logs/dev?bytes=65536'] = () => new Response(lines.map((line) => `${line}\n`).join(''))
  expect((await cli('logs', 'dev')).stdout.toString()).toBe('T1 info started\n')
  expect((await cli('logs', 'dev', '--json')).stdout.toString()).toBe(`${lines[0]}\n`)
})

describe('the token', () => {
  test('is sent to its registered origin only', async () => {
    const other = `http://localhost:${server.port}`
    const run = await cli('list', '--url', other)
    expect(run.code).toBe(255)
    expect(run.stderr).toContain('hint: give a token with --token-file FILE or SBX_TOKEN, or sign in: ')
    expect(requests.map(({ authorization }) => authorization)).toEqual([null])
    await know(url, other)
    expect(await cli('list', '--url', other)).toMatchObject({ code: 0 })
  })

  test('is not sent along a redirect', async () => {
    const elsewhere: (string | null)[] = []
    const thief = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        elsewhere.push(request.headers.get('authorization'))
        return Response.json({ sandboxes: [] })
      },
    })
    answers['GET /api/sandboxes'] = () => Response.redirect(`http://127.0.0.1:${thief.port}/api/sandboxes`)
    expect((await cli('list')).code).not.toBe(0)
    await thief.stop(true)
    expect(elsewhere).toEqual([])
  })

  test('is not read from a file that other users can write', async () => {
    await chmod(join(folder, 'local-token'), 0o666)
    const run = await cli('list')
    expect(run.code).toBe(2)
    expect(run.stderr).toContain('others can write to it')
    expect(requests).toEqual([])
  })

  test('can be given, which replaces the registered one', async () => {
    env = { ...env, SBX_TOKEN: 'other' }
    expect((await cli('list')).stderr).toContain('hint: the server does not accept this token')
    expect(requests[0]?.authorization).toBe('Bearer other')
    await writeFile(join(folder, 'mine'), TOKEN)
    expect(await cli('list', '--token-file', join(folder, 'mine'))).toMatchObject({ code: 0 })
  })
})

describe('an empty list', () => {
  const listFor = async (who: object, hasSandboxes: boolean): Promise<string> => {
    answers['GET /api/sandboxes'] = () => Response.json({ sandboxes: [] })
    answers['GET /api/whoami'] = () => Response.json({ name: 'n', account: 'a', ...who })
    answers['GET /api/capabilities'] = () => Response.json({ features: { sandbox: hasSandboxes } })
    const run = await cli('list')
    expect(run).toMatchObject({ code: 0, stdout: Buffer.alloc(0) })
    return run.stderr
  }
  const OWNER = { scopes: ['connect', 'exec', 'admin'], guest: false }

  test('shows how to create a sandbox to users who may', async () => {
    expect(await listFor(OWNER, true)).toBe(
      'sbx-stdio: no sandboxes yet; create one: npx sbx-stdio create NAME\n',
    )
    expect(await listFor({ ...OWNER, firstSandbox: 'default' }, true)).toBe(
      'sbx-stdio: no sandboxes yet; create one: npx sbx-stdio create default\n',
    )
  })

  test('shows other users what they can do', async () => {
    expect(await listFor({ ...OWNER, guest: true }, true)).toBe(
      'sbx-stdio: no sandboxes; list what is shared with you: npx sbx-stdio grants\n',
    )
    expect(await listFor({ ...OWNER, scopes: ['connect'] }, true)).toBe('sbx-stdio: no sandboxes\n')
    expect(await listFor(OWNER, false)).toBe(
      `sbx-stdio: no sandboxes yet; the server creates its only one when you attach: npx sbx-stdio ${url}\n`,
    )
    answers['GET /api/whoami'] = () => refuse(404, 'not_found', 'No such route')
    expect((await cli('list')).stderr).toBe('sbx-stdio: no sandboxes\n')
  })
})

describe('errors', () => {
  test.each([
    [
      'create --memory 1K',
      'limits.memoryBytes',
      'expected a whole number from 16777216 to 1099511627776',
      '--memory": expected a whole number from 16777216 to 1099511627776 (bytes)',
    ],
    [
      'create --cpus 999',
      'limits.milliCpus',
      'expected a whole number from 10 to 1000000',
      '--cpus": expected a whole number from 10 to 1000000 (thousandths of a CPU)',
    ],
    [
      'create --pids 1',
      'limits.pids',
      'expected a whole number from 8 to 100000',
      '--pids": expected a whole number from 8 to 100000',
    ],
    ['create --allow -', 'network.allow.0', 'expected a host', '--allow": expected a host'],
    [
      'create --sleep-after 90d',
      'sleepAfterSeconds',
      'expected a whole number from 1 to 2592000',
      '--sleep-after": expected a whole number from 1 to 2592000 (seconds)',
    ],
    ['create x', 'name', 'expected lower-case letters', 'NAME": expected lower-case letters'],
    [
      'share dev --expires 9999d',
      'expiresSeconds',
      'expected a whole number from 1 to 2592000',
      '--expires": expected a whole number from 1 to 2592000 (seconds)',
    ],
    ['share dev --label x', 'label', 'expected one line', '--label": expected one line'],
  ])('names a refused field by its option: %s', async (words, field, problem, expected) => {
    const message = `Cannot use "${field}": ${problem}`
    const refusal = (): Response =>
      Response.json({ error: { code: 'bad_request', message, field, problem } }, { status: 400 })
    answers = { 'POST /api/sandboxes': refusal, 'POST /api/grants': refusal }
    expect(await cli(...words.split(' '))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`sbx-stdio: Cannot use "${expected}\n`),
    })
  })

  test('have a hint and the exit code of the error table', async () => {
    answers['POST /api/sandboxes/dev/start'] = () =>
      refuse(404, 'sandbox_not_found', 'No sandbox "dev"\x1b[2J')
    expect(await cli('start', 'dev')).toMatchObject({
      code: 255,
      stderr: 'sbx-stdio: No sandbox "dev" [2J\nhint: list your sandboxes: npx sbx-stdio list\n',
    })
    answers['POST /api/sandboxes'] = () => refuse(400, 'bad_request', 'Cannot use "*"')
    expect(await cli('create')).toMatchObject({ code: 2 })
    answers['GET /api/sandboxes'] = () => new Response('<html>')
    expect((await cli('list')).stderr).toStartWith(
      'sbx-stdio: Cannot understand the response of the server\n',
    )
  })

  test('an unreachable server is reported with its address', async () => {
    await server.stop(true)
    const run = await cli('list')
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      `sbx-stdio: Cannot reach the server: connection refused\nhint: check that the server is running at ${url}, or start it with npm start\n`,
    )
  })

  test('usage errors and missing servers fail before any request', async () => {
    expect((await cli('start')).stderr).toBe('sbx-stdio: No sandbox is given\nhint: npx sbx-stdio list\n')
    expect(await cli('list', '--bogus')).toMatchObject({
      code: 2,
      stderr: 'sbx-stdio: Unknown option "--bogus"\nhint: npx sbx-stdio list --help\n',
    })
    await rm(join(folder, 'sandwire/servers.json'))
    expect((await cli('list')).stderr).toContain('npm start')
    expect(requests).toEqual([])
  })
})

test('every command has help', async () => {
  for (const name of ['list', 'create', 'start', 'stop', 'rm', 'sessions', 'kill', 'logs']) {
    const run = await cli(name, '--help')
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expect(run.stdout.toString()).toStartWith(`Usage: sbx-stdio ${name} `)
  }
})
