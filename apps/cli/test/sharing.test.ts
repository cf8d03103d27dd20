import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CommandRun, runInProcess } from './in-process.ts'

const TOKEN = `swl_${'t'.repeat(43)}`
const ID = '0123456789abcdefghjkmnpqrstvwxyz'
const SESSION = `${ID}.0123456789abcdefghjkmnpqrs`
const GRANT = `${ID}.0123456789abcdefghjk`
const SECRET = `${GRANT}.${'s'.repeat(43)}`
const LATER = Date.now() + 3_600_500

interface ReceivedRequest {
  readonly what: string
  readonly authorization: string | null
  readonly body: unknown
}

let folder: string
let env: Record<string, string | undefined>
let server: ReturnType<typeof Bun.serve>
let url: string
let requests: ReceivedRequest[]
/** Answers by method and path with query; what is not here is 404. */
let answers: Record<string, () => Response>

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cli-sharing-'))
  requests = []
  answers = {}
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const what = `${request.method} ${pathname}${search}`
      const text = await request.text()
      const body: unknown = text === '' ? undefined : JSON.parse(text)
      requests.push({ what, authorization: request.headers.get('authorization'), body })
      return (
        answers[what]?.() ?? Response.json({ error: { code: 'not_found', message: 'none' } }, { status: 404 })
      )
    },
  })
  url = `http://127.0.0.1:${server.port}`
  env = {
    XDG_CONFIG_HOME: folder,
    HOME: folder,
    SBX_URL: url,
    SBX_TOKEN: TOKEN,
    USER: 'carol',
    npm_command: undefined,
  }
})
afterEach(async () => {
  await server.stop(true)
  rmSync(folder, { recursive: true })
})

function cli(argv: readonly string[], input = ''): Promise<CommandRun> {
  return runInProcess(argv, { env, input })
}

const link = (): string => `${url}/join#${SECRET}`

describe('share', () => {
  test('prints the link, what it gives access to, and how to revoke it', async () => {
    const notice = 'A collaborator has a shell, and so can read and change every file in the sandbox'
    answers['POST /api/grants'] = () =>
      Response.json({ grant: GRANT, link: link(), role: 'collaborator', expiresMs: LATER, notice })
    const run = await cli(['share', 'dev', '--role', 'collaborator', '--expires', '1h', '--label', 'for Bob'])
    expect(run.stdout.toString()).toBe(`${link()}\n`)
    expect(run.stderr).toContain(`sbx-stdio: ${notice}\n`)
    expect(run.stderr).toContain('collaborator access to the sandbox for 60 min; the link works once')
    expect(run.stderr).toContain(`revoke it with: npx sbx-stdio revoke ${GRANT}\n`)
    expect(requests).toEqual([
      {
        what: 'POST /api/grants',
        authorization: `Bearer ${TOKEN}`,
        body: { sandbox: 'dev', role: 'collaborator', expiresSeconds: 3600, label: 'for Bob' },
      },
    ])
  })

  test('shares one session by its id alone', async () => {
    answers['POST /api/grants'] = () =>
      Response.json({ grant: GRANT, link: link(), role: 'viewer', expiresMs: LATER })
    const run = await cli(['share', '--session', SESSION])
    expect(run.stderr).toContain('viewer access to the session')
    expect(requests[0]?.body).toEqual({ sandbox: ID, session: SESSION })
  })

  test.each([
    [['share'], 'No sandbox is given'],
    [['share', 'dev', '--role', 'owner'], 'must be viewer or collaborator'],
    [['share', 'dev', '--expires', 'soon'], 'must be a time'],
    [['share', 'dev', '--session', 'x'], 'must be a session id'],
    [['revoke'], 'No grant is given'],
    [['revoke', '../x'], 'not a grant id'],
    [['audit', '--since', '0'], 'must be a time'],
    [['audit', '--sandbox', '../x'], 'must be the name or id'],
  ])('%j is refused', async (argv, message) => {
    const run = await cli(argv)
    expect(run.code).toBe(2)
    expect(run.stderr).toContain(message)
    expect(requests).toEqual([])
  })
})

test('grants lists holders, without control characters', async () => {
  const held = {
    grant: GRANT,
    session: null,
    role: 'viewer',
    label: 'a\x1b[2Jb',
    createdMs: 1,
    expiresMs: LATER,
  }
  answers['GET /api/grants?sandbox=dev'] = () =>
    Response.json({
      sandbox: ID,
      grants: [
        { ...held, state: 'held', account: 'x', name: 'Bob\x1b]0;t\x07' },
        { ...held, session: SESSION, state: 'open', account: null, name: null },
      ],
    })
  const run = await cli(['grants', 'dev'])
  expect(run.stdout.toString()).toMatch(/viewer {2}the sandbox +Bob \]0;t/)
  expect(run.stdout.toString()).toContain('(link not used)')
  expect(run.stdout.toString()).not.toContain('\x1b')
  answers['GET /api/account/grants'] = () =>
    Response.json({
      grants: [
        { grant: GRANT, sandbox: ID, session: SESSION, role: 'viewer', owner: 'Ann', expiresMs: LATER },
      ],
    })
  const mine = await cli(['grants'])
  expect(mine.stdout.toString()).toMatch(new RegExp(`\n${GRANT} +viewer +Ann `))
  expect(mine.stderr).toContain('leave one with: npx sbx-stdio leave GRANT\n')
})

test('list shows owners if some sandboxes are shared', async () => {
  const sandbox = { id: ID, name: 'dev', state: 'running', createdMs: 1 }
  const mine = { ...sandbox, name: 'mine' }
  const theirs = { ...sandbox, access: 'viewer', owner: 'Ann' }
  answers['GET /api/sandboxes'] = () => Response.json({ sandboxes: [mine, theirs] })
  const lines = (await cli(['list'])).stdout.toString().trimEnd().split('\n')
  expect(lines.map((line) => line.split(/ +/).at(-1))).toEqual(['OWNER', '-', 'Ann'])
  answers['GET /api/sandboxes'] = () => Response.json({ sandboxes: [mine] })
  expect((await cli(['list'])).stdout.toString()).not.toContain('OWNER')
})

test('revoke deletes the grant', async () => {
  answers[`DELETE /api/grants/${GRANT}`] = () => new Response(null, { status: 204 })
  expect(await cli(['revoke', GRANT])).toMatchObject({ code: 0 })
  expect((await cli(['revoke', GRANT, '--json'])).stdout.toString()).toBe('{}\n')
})

test('leave deletes a held grant', async () => {
  answers[`DELETE /api/account/grants/${GRANT}`] = () => new Response(null, { status: 204 })
  const run = await cli(['leave', GRANT])
  expect(run).toMatchObject({ code: 0 })
  expect(run.stderr).toContain('access given up')
  expect((await cli(['leave', GRANT, '--json'])).stdout.toString()).toBe('{}\n')
  const none = await cli(['leave', `${ID}.other`])
  expect(none.code).toBe(255)
  expect(none.stderr).toContain('hint: list them: npx sbx-stdio grants')
  const wrong = await cli(['leave'])
  expect(wrong.stderr).toContain('No grant is given\nhint: npx sbx-stdio grants\n')
})

describe('join', () => {
  const redeemed = (changes: Record<string, unknown> = {}): Response =>
    Response.json({
      grant: GRANT,
      sandbox: ID,
      session: SESSION,
      role: 'viewer',
      owner: 'Ann',
      expiresMs: LATER,
      ...changes,
    })

  test('reads the link from stdin, and prints how to attach', async () => {
    answers['POST /api/grants/redeem'] = () => redeemed()
    const run = await cli(['join'], `${link()}\n`)
    expect(run.code).toBe(0)
    expect(run.stderr).toBe(
      `sbx-stdio: Ann shared a session with you (role: viewer)\n` +
        `sbx-stdio: attach with: npx sbx-stdio ${url} --session ${SESSION} --role viewer\n`,
    )
    expect(requests).toEqual([
      { what: 'POST /api/grants/redeem', authorization: `Bearer ${TOKEN}`, body: { link: SECRET } },
    ])
  })

  test('stores the guest token for this server only, and does not print it', async () => {
    env = { ...env, SBX_TOKEN: undefined }
    const token = `swg_${'g'.repeat(43)}`
    answers['POST /api/grants/redeem'] = () => redeemed({ token })
    const file = join(folder, 'link')
    writeFileSync(file, link())
    const run = await cli(['join', '--link-file', file, '--json'])
    expect(requests[0]).toMatchObject({ authorization: null, body: { link: SECRET, name: 'carol' } })
    expect(run.stdout.toString() + run.stderr).not.toContain('gggg')
    const folderOfSignIns = join(folder, 'sandwire', 'sign-ins')
    const [name = ''] = readdirSync(folderOfSignIns)
    expect(JSON.parse(readFileSync(join(folderOfSignIns, name), 'utf8'))).toEqual({
      version: 1,
      origin: url,
      bearer: token,
      expiresMs: LATER,
    })
    await cli(['grants'])
    expect(requests.at(-1)?.authorization).toBe(`Bearer ${token}`)
    answers['POST /api/signout'] = () => new Response(null, { status: 204 })
    expect((await cli(['logout'])).stderr).toContain('you need a new link')
    expect(readdirSync(folderOfSignIns)).toEqual([])
  })

  test('uses the guest token until it expires, then hints at a new link', async () => {
    env = { ...env, SBX_TOKEN: undefined }
    answers['GET /api/account/grants'] = () => Response.json({ grants: [] })
    const joinFor = (lifeMs: number) => {
      const token = `swg_${'g'.repeat(43)}`
      answers['POST /api/grants/redeem'] = () => redeemed({ token, expiresMs: Date.now() + lifeMs })
      return cli(['join'], link())
    }
    await joinFor(0)
    const run = await cli(['grants'])
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      'sbx-stdio: Signed out: the guest access has ended\n' +
        'hint: ask the owner for a new link, then: npx sbx-stdio join\n',
    )
    await joinFor(25_000)
    expect(await cli(['grants'])).toMatchObject({ code: 0 })
  })

  test('hints at a new link when the server refuses the guest', async () => {
    env = { ...env, SBX_TOKEN: undefined }
    answers['POST /api/grants/redeem'] = () => redeemed({ token: `swg_${'g'.repeat(43)}` })
    await cli(['join'], link())
    answers['GET /api/account/grants'] = () =>
      Response.json({ error: { code: 'unauthorized', message: 'no' } }, { status: 401 })
    expect((await cli(['grants'])).stderr).toBe(
      'sbx-stdio: Signed out: the server no longer accepts this guest access: no\n' +
        'hint: ask the owner for a new link, then: npx sbx-stdio join\n',
    )
    expect(requests.filter(({ what }) => what === 'GET /api/account/grants')).toHaveLength(1)
  })

  test('stores the latest expiry of all grants of a guest', async () => {
    env = { ...env, SBX_TOKEN: undefined }
    const expiresMs = Date.now() + 20_000
    answers['POST /api/grants/redeem'] = () => redeemed({ token: `swg_${'o'.repeat(43)}` })
    await cli(['join'], link())
    answers['POST /api/grants/redeem'] = () => redeemed({ token: `swg_${'n'.repeat(43)}`, expiresMs })
    await cli(['join'], link())
    const folderOfSignIns = join(folder, 'sandwire', 'sign-ins')
    const [name = ''] = readdirSync(folderOfSignIns)
    expect(JSON.parse(readFileSync(join(folderOfSignIns, name), 'utf8'))).toMatchObject({ expiresMs: LATER })
  })

  test.each([
    ['has ended', 0],
    ['is refused', 3_600_000],
  ])('creates a new guest when the access %s', async (_, lifeMs) => {
    env = { ...env, SBX_TOKEN: undefined }
    const old = `swg_${'o'.repeat(43)}`
    answers['POST /api/grants/redeem'] = () => redeemed({ token: old, expiresMs: Date.now() + lifeMs })
    await cli(['join'], link())
    answers['POST /api/grants/redeem'] = () =>
      requests.at(-1)?.authorization === null
        ? redeemed({ token: `swg_${'n'.repeat(43)}` })
        : Response.json({ error: { code: 'unauthorized', message: 'no' } }, { status: 401 })
    expect(await cli(['join'], link())).toMatchObject({ code: 0 })
    expect(requests.at(-1)?.body).toEqual({ link: SECRET, name: 'carol' })
    await cli(['grants'])
    expect(requests.at(-1)?.authorization).toBe(`Bearer swg_${'n'.repeat(43)}`)
  })

  test('refuses a link on the command line, and does not repeat it', async () => {
    const run = await cli(['join', link()])
    expect(run.code).toBe(2)
    expect(run.stderr).toContain('A share link is not accepted as an argument')
    expect(run.stderr).not.toContain('ssss')
    expect(requests).toEqual([])
  })

  test('sends a link only to its own origin, and not over plain http (threat T2)', async () => {
    const run = await cli(['join'], `http://far.example/join#${SECRET}`)
    expect(run.stderr).toContain('neither https nor for this machine')
    expect(run.stderr).not.toContain('ssss')
    expect((await cli(['join', '--url', url], link())).stderr).toContain('given twice')
    expect(requests).toEqual([])
  })
})

test.each([
  [{ role: 'collaborator' }, `--sandbox ${ID} --no-create`],
  [{ role: 'viewer', session: SESSION }, `--session ${SESSION} --role viewer`],
  [{ role: 'collaborator', session: SESSION }, `--session ${SESSION}`],
])('grants prints how to attach to %j', async (changes, words) => {
  const held = { grant: GRANT, sandbox: ID, session: null, owner: 'Ann', expiresMs: LATER }
  answers['GET /api/account/grants'] = () => Response.json({ grants: [{ ...held, ...changes }] })
  expect((await cli(['grants'])).stderr).toContain(`attach with: npx sbx-stdio ${url} ${words}\n`)
})

test('audit reads all pages, and prints printable characters', async () => {
  const row = {
    atMs: Date.UTC(2026, 0, 2, 3, 4, 5),
    actor: 'x',
    actorName: 'Bob\x1b[2J',
    action: 'attach',
    sandbox: ID,
    sandboxName: 'dev',
    session: null,
    address: '192.0.2.1',
    outcome: 'refused',
    code: 'forbidden',
    template: null,
    command: 'bash',
    requestId: 'r',
  }
  let pages = 0
  const answer = (): Response => Response.json({ rows: [row], next: pages++ === 0 ? '1-2' : null })
  answers = new Proxy({}, { get: () => answer })
  const run = await cli(['audit', '--sandbox', 'dev', '--since', '24h'])
  const [header, ...lines] = run.stdout.toString().trimEnd().split('\n')
  expect(header).toMatch(/^WHEN +WHO +FROM +WHAT/)
  expect(lines).toHaveLength(2)
  expect(lines[0]).toMatch(
    /^2026-01-02 03:04:05 {2}Bob \[2J +192\.0\.2\.1 {2}attach {2}dev +refused {2}bash forbidden$/,
  )
  expect(requests[0]?.what).toMatch(/^GET \/api\/audit\?since=[0-9]+&sandbox=dev&limit=1000$/)
  expect(requests[1]?.what).toContain('&before=1-2')
  pages = 0
  expect(JSON.parse((await cli(['audit', '--json'])).stdout.toString())).toEqual({ rows: [row, row] })
})

test('templates lists templates and parameters', async () => {
  answers['GET /api/templates'] = () =>
    Response.json({
      templates: [
        {
          id: 'build',
          title: 'Build it',
          description: '',
          mode: 'pipe',
          params: [
            { name: 'target', description: '', maxLength: 10 },
            { name: 'jobs', description: '', maxLength: 3, default: '2' },
          ],
        },
      ],
    })
  const run = await cli(['templates'])
  expect(run.stdout.toString()).toMatch(/\nbuild +target \[jobs\] +Build it\n/)
  expect(run.stderr).toContain('--template ID --param NAME=VALUE')
})
