import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { type CliRun, finish, MAIN, runCli, startCli } from './cli-runner.ts'
import { openTerminal } from './support/terminal.ts'

// What a command prints and sends is tested in apps/cli/test; here is what needs a process: terminals, signals,
// descriptors, the environment, and attaching.

const TOKEN = `swl_${'t'.repeat(43)}`
const ID = '0123456789abcdefghjkmnpqrstvwxyz'
const SESSION = `${ID}.0123456789abcdefghjkmnpqrs`
const GRANT = `${ID}.0123456789abcdefghjk`
const SANDBOX = { id: ID, name: 'dev', state: 'running', createdMs: Date.now() }
const GRANTED = { grant: GRANT, sandbox: ID, role: 'viewer', owner: 'Ann', expiresMs: Date.now() + 3_600_000 }

interface Received {
  readonly request: string
  readonly authorization: string | null
}

let folder: string
let server: ReturnType<typeof Bun.serve>
let url: string
let env: Record<string, string | undefined>
const received: Received[] = []
let log: string[]

/** Answers by method and path. */
const answers: Readonly<Record<string, () => Response>> = {
  'GET /api/sandboxes': () => Response.json({ sandboxes: [SANDBOX] }),
  'POST /api/sandboxes': () => Response.json(SANDBOX, { status: 201 }),
  'DELETE /api/sandboxes/dev': () => new Response(null, { status: 204 }),
  'GET /api/account/sessions': () =>
    Response.json({
      sessions: [{ id: SESSION, sandbox: ID, state: 'running', cmd: 'bash', attachments: 0 }],
    }),
  'GET /api/account/grants': () => Response.json({ grants: [GRANTED] }),
  'POST /api/grants/redeem': () => Response.json({ ...GRANTED, session: null, sandboxName: 'dev' }),
  'GET /logs/dev': () => new Response(log.map((line) => `${line}\n`).join('')),
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cli-commands-'))
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      const { pathname, search } = new URL(request.url)
      const authorization = request.headers.get('authorization')
      received.push({ request: `${request.method} ${pathname}${search}`, authorization })
      return answers[`${request.method} ${pathname}`]?.() ?? new Response('', { status: 404 })
    },
  })
  url = `http://127.0.0.1:${server.port}`
  const tokenFile = join(folder, 'local-token')
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 })
  const servers = JSON.stringify({ servers: [{ url, tokenFile }] })
  Bun.spawnSync(['mkdir', '-m', '700', join(folder, 'sandwire')])
  writeFileSync(join(folder, 'sandwire/servers.json'), servers, { mode: 0o600 })
  env = { XDG_CONFIG_HOME: folder, HOME: folder, SBX_URL: undefined, SBX_TOKEN: undefined }
})
afterAll(async () => {
  await server.stop(true)
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  received.length = 0
  log = ['{"time":"T1","level":"info","event":"started"}']
})

function cli(...argv: readonly string[]): Promise<CliRun> {
  return runCli([process.execPath, MAIN, ...argv], { env })
}

function terminal(argv: readonly string[], size: { cols?: number; rows?: number } = {}) {
  return openTerminal({ argv: [process.execPath, MAIN, ...argv], env, ...size })
}

describe('on a terminal', () => {
  test('rm asks before it removes', async () => {
    await using no = terminal(['rm', 'dev'])
    await using yes = terminal(['rm', 'dev'])
    await no.waitFor('[y/N]')
    no.send('n\r')
    await no.waitFor('dev was not removed')
    await no.exit
    expect(received).toEqual([])
    await yes.waitFor('[y/N]')
    yes.send('y\r')
    await yes.waitFor('dev removed')
    await yes.exit
    expect(received.map(({ request }) => request)).toEqual(['DELETE /api/sandboxes/dev'])
  })

  test('Ctrl-C at a question exits and does nothing', async () => {
    await using question = terminal(['rm', 'dev'])
    await using secret = terminal(['join'])
    await question.waitFor('[y/N]')
    question.send('\x03')
    expect(await question.exit).toMatchObject({ code: 130 })
    expect(question.rawOutput()).toMatch(/\n$/)
    await secret.waitFor('Share link (not echoed): ')
    secret.send('\x03')
    expect(await secret.exit).toMatchObject({ code: 130 })
    expect(secret.rawOutput()).not.toContain('sbx-stdio')
    expect(received).toEqual([])
  })

  test('join reads the link without echoing it', async () => {
    await using join = terminal(['join'], { cols: 200 })
    await join.waitFor('Share link (not echoed): ')
    join.send(`${url}/join#${GRANT}.${'s'.repeat(43)}\r`)
    await join.waitFor('Ann shared sandbox dev with you')
    await join.waitFor('list its sessions')
    expect(await join.exit).toMatchObject({ code: 0 })
    expect(join.rawOutput()).not.toContain('ssss')
  })

  test('tables and help fit a narrow window', async () => {
    await using table = terminal(['grants'])
    await using help = terminal(['share', '--help'], { rows: 50 })
    await table.waitFor('leave one with')
    expect(table.rawOutput()).toMatch(new RegExp(`viewer +Ann .*\\r\\n  ${GRANT}\\r\\n`))
    expect(await help.exit).toMatchObject({ code: 0 })
    const widths = help
      .rawOutput()
      .split('\r\n')
      .map((line) => line.length)
    expect(Math.max(...widths)).toBeLessThanOrEqual(80)
  })
})

test('logs --follow prints new lines until it is interrupted', async () => {
  const child = startCli([process.execPath, MAIN, 'logs', 'dev', '--follow'], env)
  let output = ''
  const [read, rest] = child.stdout.tee()
  Object.defineProperty(child, 'stdout', { value: rest })
  void (async () => {
    for await (const chunk of read) output += new TextDecoder().decode(chunk)
  })()
  await eventually(() => received.length > 0, { what: 'the first poll' })
  log.push('{"time":"T2","level":"warn","event":"egress_blocked","host":"evil.com","port":443}')
  await eventually(() => output.includes('T2'), { what: 'the second line' })
  child.kill('SIGINT')
  const { stdout } = await finish(child)
  expect(stdout.toString()).toBe('T1 info started\nT2 warn egress_blocked host=evil.com port=443\n')
})

test('the token does not pass through a proxy that the environment names', async () => {
  const proxied: string[] = []
  const proxy = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      proxied.push(request.url)
      return new Response('proxied')
    },
  })
  const proxyUrl = `http://127.0.0.1:${proxy.port}`
  const run = await runCli([process.execPath, MAIN, 'list'], {
    env: { ...env, http_proxy: proxyUrl, HTTP_PROXY: proxyUrl, ALL_PROXY: proxyUrl },
  })
  await proxy.stop(true)
  expect(run).toMatchObject({ code: 0, stderr: '' })
  expect(proxied).toEqual([])
})

describe('attaching', () => {
  test('uses the token of a server on this machine', async () => {
    const run = await cli(
      `${url}/attach`,
      '--sandbox',
      'dev',
      '--no-create',
      '--cmd',
      'true',
      '--retry-for',
      '0',
    )
    expect(run.code).not.toBe(0)
    const [first] = received
    expect(first?.authorization).toBe(`Bearer ${TOKEN}`)
    const query = new URLSearchParams(first?.request.split('?')[1])
    expect([query.get('sandbox'), query.get('create'), query.get('cmd')]).toEqual(['dev', '0', 'true'])
  })

  test('completes an abbreviated session id, and refuses one that matches nothing', async () => {
    const [known, unknown] = await Promise.all([
      cli(url, '--session', `${ID}.01234`, '--retry-for', '0'),
      cli(url, '--session', 'zzzz'),
    ])
    expect(known.code).not.toBe(0)
    expect(received.find(({ request }) => request.startsWith('GET /attach'))?.request).toContain(
      `session=${SESSION}`,
    )
    expect(unknown).toMatchObject({
      code: 2,
      stderr: `sbx-stdio: No session id starts with "zzzz"\nhint: npx sbx-stdio sessions --url ${url}\n`,
    })
  })
})

test('version is the same as --version, and --help goes to stdout', async () => {
  const [command, option, help] = await Promise.all([cli('version'), cli('--version'), cli('--help')])
  expect([command.code, command.stdout.toString()]).toEqual([0, option.stdout.toString()])
  expect(help).toMatchObject({ code: 0, stderr: '' })
  expect(help.stdout.toString()).toContain('"default"')
})

describe.each(['--help', 'list', 'create --json'])('%s', (words) => {
  const run = (script: string): Promise<CliRun> =>
    runCli(['bash', '-c', script, 'bash', process.execPath, MAIN, ...words.split(' ')], { env })

  test('exits silently like SIGPIPE when the reader is gone', async () => {
    const { stderr } = await run('exec 3> >(true); wait $!; "$@" >&3; echo $? >&2')
    expect(stderr).toBe('141\n')
  })

  test('reports why stdout cannot be written', async () => {
    const { stderr, code } = await run('exec "$@" > /dev/full')
    expect(stderr).toEndWith('sbx-stdio: Cannot write to stdout: ENOSPC\nhint: check where the output goes\n')
    expect(code).toBe(255)
  })
})
