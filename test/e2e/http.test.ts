import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connectPlain, eventually, rejectionOf, UpgradeRefused } from '@sandwire/testing'
import { Attached, endSession, runShell } from './support/attached.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'
import { mintHex } from './support/wire-client.ts'

const MAIN = resolve(import.meta.dir, '../../apps/sandboxd/src/main.ts')
let sandboxd: RunningSandboxd

beforeAll(async () => {
  sandboxd = await startSandboxd()
})
afterAll(() => sandboxd.stop())

async function json(
  path: string,
  init?: RequestInit,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await sandboxd.fetch(path, init)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

function post(path: string, body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  return json(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })
}

describe('POST /sessions', () => {
  test('starts a process with arguments, environment, directory, mode and size', async () => {
    await Bun.$`mkdir -p ${sandboxd.workspace}/sub`.quiet()
    const script = 'echo "$1|$WORD|$(basename "$PWD")|$(stty size)"'
    const created = await post('/sessions', {
      createId: mintHex(),
      cmd: 'sh',
      args: ['-c', script, 'sh', 'arg one'],
      env: { WORD: 'val' },
      cwd: 'sub',
      mode: 'pty',
      cols: 77,
      rows: 11,
    })
    expect(created.status).toBe(201)
    expect(created.body).toMatchObject({ mode: 'pty', cmd: 'sh', overflow: 'trim', keepSeconds: 60 })
    const id = String(created.body['id'])
    await eventually(async () => (await json(`/sessions/${id}`)).body['state'] === 'exited', {
      what: 'the exit',
    })
    const output = await sandboxd.fetch(`/sessions/${id}/output`)
    expect((await output.text()).trim()).toBe('arg one|val|sub|11 77')
    await endSession(sandboxd, id)
  })

  test.each([
    ['no JSON', '{'],
    ['a list', []],
    ['no createId', { cmd: 'true' }],
    ['a short createId', { createId: 'abc', cmd: 'true' }],
    ['an unknown field', { createId: mintHex(), cmd: 'true', shell: true }],
    ['an empty command', { createId: mintHex(), cmd: '' }],
    ['a NUL in an argument', { createId: mintHex(), cmd: 'true', args: ['a\0b'] }],
    ['arguments without a command', { createId: mintHex(), args: ['a'] }],
    ['a wrong mode', { createId: mintHex(), cmd: 'true', mode: 'tty' }],
    ['a wrong overflow', { createId: mintHex(), cmd: 'true', overflow: 'drop' }],
    ['columns as text', { createId: mintHex(), cmd: 'true', cols: '80' }],
    ['far too many columns', { createId: mintHex(), cmd: 'true', cols: 1e9 }],
    ['a polluted environment', `{"createId":"${mintHex()}","cmd":"true","env":{"__proto__":{"x":1}}}`],
  ])('refuses %s', async (_, body) => {
    const { status, body: answer } = await post('/sessions', body)
    expect([status, (answer['error'] as { code: string }).code]).toEqual([400, 'bad_request'])
  })

  test('refuses a directory outside the workspace', async () => {
    const { status, body } = await post('/sessions', { createId: mintHex(), cmd: 'true', cwd: '..' })
    expect([status, (body['error'] as { code: string }).code]).toEqual([400, 'path_refused'])
  })

  test('refuses a body that is too large', async () => {
    const { status } = await post('/sessions', {
      createId: mintHex(),
      cmd: 'true',
      args: ['x'.repeat(300_000)],
    })
    expect(status).toBe(413)
  })
})

describe('GET /sessions', () => {
  test('lists and shows sessions', async () => {
    await using client = runShell(sandboxd, 'echo hi; cat', { name: 'Ada' })
    await client.waitFor('hi')
    const { body } = await json('/sessions')
    expect(body['sessions']).toMatchObject([
      { id: client.session, state: 'running', mode: 'pipe', attachments: 1, output: { start: 0, end: 3 } },
    ])
    const { body: shown } = await json(`/sessions/${client.session}`)
    expect(shown).toMatchObject({ id: client.session, cmd: 'sh', exit: null })
    expect(typeof shown['pid']).toBe('number')
  })

  test('responds 404 for an unknown session', async () => {
    const { status, body } = await json(`/sessions/${mintHex()}`)
    expect([status, (body['error'] as { code: string }).code]).toEqual([404, 'session_not_found'])
  })
})

describe('GET /sessions/:id/output', () => {
  test('returns the bytes of both streams from an offset, in pages', async () => {
    await using client = runShell(sandboxd, 'head -c 1500000 /dev/zero; read go; printf abc >&2; exit 0', {
      output: 'digest',
    })
    await eventually(() => client.stdout.length === 1_500_000, { what: 'stdout before stderr' })
    await client.send('\n')
    await client.exit
    let from = 0
    let last = ''
    for (let piece = 0; piece < 10 && from < 1_500_003; piece++) {
      const response = await sandboxd.fetch(`/sessions/${client.session}/output?from=${from}`)
      expect(Number(response.headers.get('sandwire-from'))).toBe(from)
      const bytes = await response.bytes()
      expect(Number(response.headers.get('sandwire-next'))).toBe(from + bytes.byteLength)
      expect(Number(response.headers.get('sandwire-end'))).toBe(1_500_003)
      from += bytes.byteLength
      last = new TextDecoder().decode(bytes.subarray(-3))
    }
    expect([from, last]).toEqual([1_500_003, 'abc'])
  })

  test.each(['-1', '1e3', '01', ' 1', '99999999999999999999', 'x', '5'])(
    'refuses the offset "%s"',
    async (from) => {
      await using client = runShell(sandboxd, 'true')
      await client.exit
      const response = await sandboxd.fetch(
        `/sessions/${client.session}/output?from=${encodeURIComponent(from)}`,
      )
      expect(response.status).toBe(400)
    },
  )
})

describe('POST /sessions/:id/signal', () => {
  test.each([['{}'], ['{"signal":"TERM"}'], ['{"signal":"SIGNOPE"}'], ['{"signal":9}'], ['[]']])(
    'refuses %s',
    async (body) => {
      await using client = runShell(sandboxd, 'cat')
      await client.isAttached()
      expect((await post(`/sessions/${client.session}/signal`, body)).status).toBe(400)
    },
  )

  test('reports that the process has ended', async () => {
    await using client = runShell(sandboxd, 'true')
    await client.exit
    const { status, body } = await post(`/sessions/${client.session}/signal`, { signal: 'SIGTERM' })
    expect([status, (body['error'] as { code: string }).code]).toEqual([410, 'session_gone'])
  })
})

describe('other routes', () => {
  test('/activity reports attachments and the last input and output', async () => {
    await using client = runShell(sandboxd, 'cat')
    await client.send('x\n')
    await client.waitFor('x')
    // Sessions of earlier tests end after the response to the request that ends them.
    const body = await eventually(
      async () => {
        const { body: found } = await json('/activity')
        return Array.isArray(found['sessions']) && found['sessions'].length === 1 ? found : undefined
      },
      { what: 'one session' },
    )
    expect(body).toMatchObject({ attachments: 1, sessions: [{ id: client.session }] })
    const nowMs = Date.now()
    for (const name of ['lastInputMs', 'lastOutputMs'])
      expect(Math.abs(nowMs - Number(body[name]))).toBeLessThan(60_000)
    client.handle.signal('SIGKILL')
    await client.exit
    const { body: later } = await json('/activity')
    expect(JSON.stringify(later['exits'])).toContain('"signal":"SIGKILL"')
  })

  test('/metrics is valid Prometheus text', async () => {
    await using client = runShell(sandboxd, 'echo hi; cat')
    await client.waitFor('hi')
    await sandboxd.fetch('/nowhere')
    const response = await sandboxd.fetch('/metrics')
    expect(response.headers.get('content-type')).toStartWith('text/plain; version=0.0.4')
    const text = await response.text()
    expect(text).toEndWith('\n')
    const types = new Map<string, string>()
    const seen = new Set<string>()
    for (const line of text.trimEnd().split('\n')) {
      const type = /^# TYPE ([a-z_]+) (gauge|counter)$/.exec(line)
      if (type?.[1] !== undefined && type[2] !== undefined) types.set(type[1], type[2])
      if (line.startsWith('#')) {
        expect(line).toMatch(/^# (HELP|TYPE) [a-z_]+ .+$/)
        continue
      }
      const sample = /^([a-z_]+)(\{[a-z_]+="[^"\\\n]*"(,[a-z_]+="[^"\\\n]*")*\})? [0-9]+(\.[0-9]+)?$/.exec(
        line,
      )
      expect([line, sample !== null]).toEqual([line, true])
      const name = sample?.[1] ?? ''
      expect(types.has(name)).toBe(true)
      expect(name.endsWith('_total')).toBe(types.get(name) === 'counter')
      expect(seen.has(line.split(' ')[0] ?? '')).toBe(false)
      seen.add(line.split(' ')[0] ?? '')
    }
    expect(text).toMatch(/^sandwire_attachments 1$/m)
    expect(text).toMatch(/^sandwire_refused_total\{code="not_found"\} [1-9]/m)
  })

  test('/__meta/version reports the supported protocol versions', async () => {
    const { body } = await json('/__meta/version')
    expect(body).toMatchObject({ name: 'sandboxd', version: sandboxd.version, protocol: 1 })
  })

  test.each([
    ['POST', '/activity', 405, 'GET'],
    ['DELETE', '/sessions', 405, 'GET, POST'],
    ['PUT', '/sessions/x', 405, 'GET, DELETE'],
    ['GET', '/sessions/x/signal', 405, 'POST'],
    ['GET', '/sessions?limit=5', 400, null],
    ['GET', '/activity?a=1', 400, null],
    ['DELETE', '/sessions/x?force=1', 400, null],
    ['GET', '/sessions/x/output?from=0&to=5', 400, null],
    ['GET', '/sessions/x/nothing', 404, null],
    ['GET', '/sessions/x/output/more', 404, null],
    ['GET', '/', 404, null],
    ['GET', '/__meta/other', 404, null],
    ['GET', '/sessions/', 404, null],
    ['GET', '/attach', 426, null],
    ['POST', '/attach', 426, null],
  ])('%s %s responds with %d', async (method, path, status, allow) => {
    const response = await sandboxd.fetch(path, { method })
    expect(response.status).toBe(status)
    expect(response.headers.get('allow')).toBe(allow)
  })
})

describe('GET /attach', () => {
  test.each([
    'role=owner',
    'mode=tty',
    'cmd=',
    'cmd=cat&cmd=dog',
    'cmd=cat&keep=-1',
    'cmd=cat&keep=1e3',
    'cmd=cat&keep=%2B5',
    'cmd=cat&cols=0',
    'cmd=cat&cols=05',
    'cmd=cat&rows=99999',
    'cmd=cat&createId=xyz',
    'cmd=cat&unknown=1',
    'cmd=cat&env_LD_PRELOAD=x',
    'cmd=cat&token=x',
    'arg=x',
    'cmd=ca%00t',
    'session=x&cmd=cat',
    'session=x&createId=00000000000000000000000000000000',
  ])('refuses "%s" before anything starts', async (query) => {
    const { status, body } = await json(`/attach?${query}`)
    expect([status, (body['error'] as { code: string }).code]).toEqual([400, 'bad_request'])
  })

  test.each(['session=x', 'role=viewer', 'take=1', 'keep=5', 'overflow=trim', `createId=${'0'.repeat(32)}`])(
    '[P4] refuses "%s" to a plain client',
    async (parameter) => {
      const cmd = parameter.startsWith('session') ? '' : 'cmd=cat&'
      const refused = await rejectionOf(
        connectPlain(sandboxd.socketUrl(`/attach?${cmd}${parameter}`), { headers: sandboxd.headers }),
      )
      expect(refused).toBeInstanceOf(UpgradeRefused)
      expect(refused).toMatchObject({ status: 426 })
      expect(refused.message).toContain('needs_v1')
    },
  )

  test('reports the error code to the client library', async () => {
    const client = new Attached(sandboxd, { cmd: 'cat', cwd: 'no/such/place' })
    const status = await eventually(
      () => {
        const now = client.handle.status.get()
        return now.kind === 'failed' ? now : undefined
      },
      { what: 'the refusal' },
    )
    expect(status.error.code).toBe('path_refused')
    expect(status.error.message).toContain('no such folder')
  })
})

test('answers requests that wait for changes of files at their end, over TCP and a unix socket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-http-'))
  const socket = join(folder, 'sandboxd.sock')
  const flags = ['--insecure', '--listen', `unix:${socket}`, '--workspace', folder]
  const other = Bun.spawn([process.execPath, MAIN, ...flags], { stdout: 'ignore', stderr: 'ignore' })
  const overSocket = async (path: string): Promise<unknown> =>
    (await fetch(`http://localhost${path}`, { unix: socket })).json()
  const overTcp = async (path: string): Promise<unknown> => (await json(path)).body
  // Bun ends a silent request after 8 to 12 s unless it is told otherwise.
  const waits = async (get: typeof overTcp): Promise<unknown> => {
    const { changes } = (await get('/versions/changes')) as { changes: number }
    return get(`/versions/changes?known=${changes}&wait=13`)
  }
  try {
    await eventually(() => existsSync(socket), { what: 'the socket' })
    const answers = await Promise.all([overTcp, overSocket].map(waits))
    for (const answer of answers) expect(answer).toMatchObject({ isEnding: false })
  } finally {
    other.kill()
    await other.exited
    rmSync(folder, { recursive: true, force: true })
  }
})
