import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { chmodSync, chownSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connectPlain, eventually, openRawTcp, openRawWebSocket, UpgradeRefused } from '@sandwire/testing'
import { Attached, endSession, runShell } from './support/attached.ts'
import { AS_NOBODY, NOBODY, nobodyProblem } from './support/nobody.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'
import { mintHex, WireClient } from './support/wire-client.ts'

const ORIGIN = 'https://app.example'
const CANARY = `CNRY-${mintHex()}`
let sandboxd: RunningSandboxd

beforeAll(async () => {
  sandboxd = await startSandboxd({
    args: ['--origin', ORIGIN, '--host', 'sandbox.example'],
    env: { SANDWIRE_CANARY: CANARY, AWS_SECRET_ACCESS_KEY: CANARY },
  })
})
afterAll(() => sandboxd.stop())

async function countSessions(): Promise<number> {
  return ((await (await sandboxd.fetch('/sessions')).json()) as { sessions: unknown[] }).sessions.length
}

/** Sends a raw request and returns the status of the response. */
async function request(lines: readonly string[]): Promise<{ status: number; body: string }> {
  await using tcp = await openRawTcp({ port: sandboxd.port })
  await tcp.write(`${lines.join('\r\n')}\r\n\r\n`)
  const decoder = new TextDecoder()
  let text = ''
  for (let bytes = await tcp.read(); bytes !== undefined; bytes = await tcp.read()) {
    text += decoder.decode(bytes)
    if (text.includes('\r\n\r\n')) break
  }
  return { status: Number(text.split(' ')[1]), body: text }
}

const upgradeLines = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: c2FuZHdpcmUgcmF3IGtleQ==',
]

const ROUTES = [
  ['GET', '/sessions'],
  ['POST', '/sessions'],
  ['GET', '/sessions/x'],
  ['DELETE', '/sessions/x'],
  ['POST', '/sessions/x/signal'],
  ['GET', '/sessions/x/output'],
  ['GET', '/activity'],
  ['GET', '/metrics'],
  ['GET', '/__meta/version'],
  ['GET', '/attach?cmd=true'],
  ['GET', '/no-such-route'],
] as const

describe('the secret', () => {
  test.each(ROUTES)('is required for %s %s', async (method, path) => {
    const wrong = [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      `Bearer ${sandboxd.secret}x`,
      `Bearer ${sandboxd.secret.slice(1)}`,
      `Basic ${Buffer.from(`x:${sandboxd.secret}`).toString('base64')}`,
      sandboxd.secret,
    ]
    for (const authorization of wrong) {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
      const response = await fetch(new URL(path, sandboxd.url), { method, headers })
      expect([authorization, response.status]).toEqual([authorization, 401])
      expect(await response.json()).toMatchObject({ error: { code: 'unauthorized' } })
    }
  })

  test.each([
    ['a query parameter', (secret: string) => ({ path: `/attach?cmd=cat&token=${secret}`, headers: {} })],
    ['a cookie', (secret: string) => ({ path: '/attach?cmd=cat', headers: { cookie: `token=${secret}` } })],
    [
      'a subprotocol',
      (secret: string) => ({
        path: '/attach?cmd=cat',
        headers: { 'sec-websocket-protocol': `bearer.${secret}` },
      }),
    ],
  ])('does not work as %s', async (_, make) => {
    const { path, headers } = make(sandboxd.secret)
    const handshake = await openRawWebSocket({ port: sandboxd.port, path, headers })
    expect(handshake).toMatchObject({ kind: 'refused', status: 401 })
    expect(await countSessions()).toBe(0)
  })

  test('is refused as a query parameter even with a valid header', async () => {
    const response = await sandboxd.fetch(`/attach?cmd=cat&token=${sandboxd.secret}`)
    expect(response.status).toBe(400)
    expect(await response.text()).not.toContain(sandboxd.secret)
  })

  test('is not required for /healthz, which reveals nothing', async () => {
    const response = await fetch(new URL('/healthz', sandboxd.url))
    expect([response.status, await response.text()]).toEqual([200, '{"status":"ok"}'])
  })

  test('is removed from the disk', async () => {
    expect(await Bun.file(sandboxd.secretFile).exists()).toBe(false)
  })

  test("is in no environment or command line, and sandboxd's environment is not inherited", async () => {
    const script = `env; tr '\\0' '\\n' <"/proc/$PPID/cmdline"; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c -- "$SOUGHT"`
    await using client = runShell(sandboxd, script, { env: { SOUGHT: sandboxd.secret.slice(0, 20) } })
    await client.exit
    const lines = client.text.trimEnd().split('\n')
    // The search pattern is in the shell's own environment and nowhere else.
    expect(
      lines
        .filter((line) => line.includes(sandboxd.secret.slice(0, 20)))
        .every((line) => line.startsWith('SOUGHT=')),
    ).toBe(true)
    expect(client.text).not.toContain(sandboxd.secret)
    expect(client.text).not.toContain(CANARY)
  })
})

describe('the Host header', () => {
  const port = () => sandboxd.port
  test.each([
    () => 'evil.example',
    () => `evil.example:${port()}`,
    () => 'localhost.evil.example',
    () => `127.0.0.1.nip.io:${port()}`,
    () => '[::1]:9999',
    () => 'localhost',
    () => 'localhost:80',
    () => '127.0.0.1',
    () => `127.0.0.1:${port() + 1}`,
    () => `127.1:${port()}`,
    () => `0.0.0.0:${port()}`,
    () => `127.0.0.1:0${port()}`,
    () => `localhost.:${port()}`,
    () => `user@127.0.0.1:${port()}`,
    () => `sandbox.example:${port()}`,
    () => 'sandbox.example.',
    () => '',
    () => `127.0.0.1:${port()}, evil.example`,
  ])('of another server is refused (%#)', async (host) => {
    const bearer = `Authorization: Bearer ${sandboxd.secret}`
    for (const path of ['/healthz', '/sessions', '/attach?cmd=cat']) {
      const { status } = await request([
        `GET ${path} HTTP/1.1`,
        `Host: ${host()}`,
        bearer,
        ...(path.startsWith('/attach') ? upgradeLines : []),
      ])
      expect([400, 403, 421]).toContain(status)
    }
    expect(await countSessions()).toBe(0)
  })

  test('is refused when missing or repeated', async () => {
    const bearer = `Authorization: Bearer ${sandboxd.secret}`
    const good = `Host: 127.0.0.1:${port()}`
    const missing = await request(['GET /sessions HTTP/1.1', bearer])
    const doubled = await request(['GET /sessions HTTP/1.1', good, 'Host: evil.example', bearer])
    const reversed = await request(['GET /sessions HTTP/1.1', 'Host: evil.example', good, bearer])
    for (const { status } of [missing, doubled, reversed]) expect([400, 403, 421]).toContain(status)
  })

  test('is not replaced by an absolute request target', async () => {
    const lines = [
      `GET http://127.0.0.1:${port()}/sessions HTTP/1.1`,
      'Host: evil.example',
      `Authorization: Bearer ${sandboxd.secret}`,
    ]
    expect([400, 403, 404, 421]).toContain((await request(lines)).status)
  })

  test.each([
    () => `127.0.0.1:${port()}`,
    () => `localhost:${port()}`,
    () => `LOCALHOST:${port()}`,
    () => `[::1]:${port()}`,
    () => 'sandbox.example',
  ])('of this server is accepted (%#)', async (host) => {
    const { status } = await request([
      'GET /sessions HTTP/1.1',
      `Host: ${host()}`,
      `Authorization: Bearer ${sandboxd.secret}`,
    ])
    expect(status).toBe(200)
  })
})

describe('the Origin header', () => {
  const evil = [
    'https://evil.example',
    'null',
    '',
    'https://app.example.evil.com',
    'https://evilapp.example',
    'http://app.example',
    'https://app.example:444',
    'https://app.example:443',
    'https://app.example.',
    'HTTPS://APP.EXAMPLE',
    'https://app.example/',
    'https://app.example@evil.com',
    'https://app.example https://evil.example',
    'file://',
  ]
  test.each(evil)('"%s" is refused on upgrades and requests, even with a valid secret', async (origin) => {
    const bearer = `Authorization: Bearer ${sandboxd.secret}`
    const host = `Host: 127.0.0.1:${sandboxd.port}`
    for (const path of ['/attach?cmd=cat', '/sessions', '/healthz']) {
      const lines = [
        `GET ${path} HTTP/1.1`,
        host,
        bearer,
        `Origin: ${origin}`,
        ...(path.startsWith('/attach') ? upgradeLines : []),
      ]
      expect([path, (await request(lines)).status]).toEqual([path, 403])
    }
    expect(await countSessions()).toBe(0)
  })

  test('sent twice is refused', async () => {
    const headers = [
      ['authorization', `Bearer ${sandboxd.secret}`],
      ['origin', ORIGIN],
      ['origin', 'https://evil.example'],
    ] as const
    expect(await openRawWebSocket({ port: sandboxd.port, path: '/attach?cmd=cat', headers })).toMatchObject({
      kind: 'refused',
      status: 403,
    })
  })

  test("of the server's own address is not allowed by default", async () => {
    const headers = { ...sandboxd.headers, origin: sandboxd.url }
    expect(await openRawWebSocket({ port: sandboxd.port, path: '/attach?cmd=cat', headers })).toMatchObject({
      kind: 'refused',
      status: 403,
    })
  })

  test('that is allowed still needs the secret', async () => {
    const open = await openRawWebSocket({
      port: sandboxd.port,
      path: '/attach?cmd=true',
      headers: { ...sandboxd.headers, origin: ORIGIN },
    })
    expect(open.kind).toBe('open')
    if (open.kind === 'open') await open.socket.closed
    const without = await openRawWebSocket({
      port: sandboxd.port,
      path: '/attach?cmd=true',
      headers: { origin: ORIGIN },
    })
    expect(without).toMatchObject({ kind: 'refused', status: 401 })
    await eventually(async () => (await countSessions()) === 0, { what: 'the session to end' })
  })

  test('is optional, because programs send none', async () => {
    const open = await openRawWebSocket({
      port: sandboxd.port,
      path: '/attach?cmd=true',
      headers: sandboxd.headers,
    })
    expect(open.kind).toBe('open')
    if (open.kind === 'open') await open.socket.closed
    await eventually(async () => (await countSessions()) === 0, { what: 'the session to end' })
  })

  test('gets no CORS headers', async () => {
    for (const method of ['GET', 'OPTIONS']) {
      const response = await sandboxd.fetch('/sessions', { method, headers: { origin: ORIGIN } })
      expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })
})

describe('identities', () => {
  test('[R5] that are guessed neither resume nor start a session', async () => {
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    for (let guess = 0; guess < 20; guess++) {
      await using client = new WireClient(sandboxd, `session=${driver.session}`)
      await client.hello({ identity: mintHex(), attempt: 2, resuming: true, received: 0 })
      expect(await client.closed).toEqual({ code: 4431, reason: 'resume_lost' })
    }
    expect(driver.handle.role).toBe('driver')
  })

  test('[R6] cannot acknowledge bytes that were never sent', async () => {
    await using driver = runShell(sandboxd, 'cat')
    await driver.isAttached()
    const identity = mintHex()
    await using first = new WireClient(sandboxd, `session=${driver.session}&role=viewer`)
    await first.hello({ identity })
    await first.next('welcome')
    await using second = new WireClient(sandboxd, `session=${driver.session}&role=viewer`)
    await second.hello({ identity, attempt: 2, resuming: true, received: 1_000_000 })
    expect(await second.closed).toEqual({ code: 4432, reason: 'desync' })
  })

  test.each(['a/../b', 'A%2fb', '..', '__proto__', 'constructor', 'x'.repeat(200), '', 'é', 'a%00b'])(
    'that are invalid session ids such as "%s" match no session',
    async (id) => {
      const response = await sandboxd.fetch(`/sessions/${id}/output`)
      expect([400, 404, 405]).toContain(response.status)
      if (id !== '') {
        const joined = new Attached(sandboxd, { session: decodeURIComponent(id) })
        const status = await eventually(
          () => {
            const now = joined.handle.status.get()
            return now.kind === 'failed' ? now : undefined
          },
          { what: 'the refusal' },
        )
        expect(['session_not_found', 'bad_request']).toContain(status.error.code)
      }
    },
  )
})

describe('the working directory', () => {
  test.each(['..', '/', '/etc', '../..', 'a/../../..', 'link'])(
    '"%s" outside the workspace is refused',
    async (cwd) => {
      const link = join(sandboxd.workspace, 'link')
      if (cwd === 'link') await Bun.$`ln -sfn /etc ${link}`.quiet()
      const query = new URLSearchParams({ cmd: 'pwd', cwd })
      const refused = await connectPlain(sandboxd.socketUrl(`/attach?${query}`), {
        headers: sandboxd.headers,
      }).then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(refused).toBeInstanceOf(UpgradeRefused)
      expect(refused).toMatchObject({ status: 400 })
    },
  )
})

describe('the log', () => {
  test('contains no secrets, queries or client data', async () => {
    const marks = {
      cmd: `cmd-${mintHex()}`,
      header: `hdr-${mintHex()}`,
      path: `path-${mintHex()}`,
      body: `body-${mintHex()}`,
    }
    await sandboxd.fetch(`/${marks.path}?token=${sandboxd.secret}`, { headers: { 'x-mark': marks.header } })
    await sandboxd.fetch('/sessions', { method: 'POST', body: marks.body })
    await fetch(new URL(`/sessions?secret=${sandboxd.secret}`, sandboxd.url), {
      headers: { authorization: `Bearer ${marks.header}` },
    })
    await using client = new Attached(sandboxd, { cmd: 'sh', args: ['-c', `echo ${marks.cmd}; cat`] })
    await client.waitFor(marks.cmd)
    await client.send(`${marks.body}\n`)
    await client.waitFor(marks.body)
    await endSession(sandboxd, client.session)
    await eventually(
      () =>
        sandboxd
          .logs()
          .some(
            (line) =>
              typeof line === 'object' && line['event'] === 'ended' && line['session'] === client.session,
          ),
      { what: 'the exit in the log' },
    )
    const log = JSON.stringify(sandboxd.logs())
    for (const mark of [sandboxd.secret, CANARY, ...Object.values(marks)]) expect(log).not.toContain(mark)
    expect(sandboxd.logs().every((line) => typeof line === 'object')).toBe(true)
  })
})

describe('errors', () => {
  test('have a code, a message and a request id, and no stack', async () => {
    const response = await sandboxd.fetch('/sessions', { method: 'POST', body: '{' })
    const body = (await response.json()) as { error: Record<string, unknown> }
    expect(Object.keys(body.error).sort()).toEqual(['code', 'message', 'request_id'])
    expect(response.headers.get('x-request-id')).toBe(String(body.error['request_id']))
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  })
})

describe('--insecure', () => {
  test('needs no secret but still checks Host and Origin', async () => {
    const port = 20_000 + Math.floor(Math.random() * 20_000)
    const child = Bun.spawn(
      [
        process.execPath,
        join(import.meta.dir, '../../apps/sandboxd/src/main.ts'),
        '--insecure',
        '--listen',
        `127.0.0.1:${port}`,
      ],
      {
        cwd: sandboxd.workspace,
        stdout: 'pipe',
        stderr: 'ignore',
      },
    )
    try {
      const url = `http://127.0.0.1:${port}/sessions`
      await eventually(async () => (await fetch(url)).status === 200, { what: 'sandboxd' })
      expect((await fetch(url, { headers: { origin: 'https://evil.example' } })).status).toBe(403)
      expect((await fetch(url, { headers: { host: 'evil.example' } })).status).toBe(421)
    } finally {
      child.kill('SIGTERM')
      await child.exited
    }
  })

  test.each([['0.0.0.0:0'], ['[::]:0'], ['example.com:0']])('is refused on %s', async (address) => {
    const child = Bun.spawn(
      [
        process.execPath,
        join(import.meta.dir, '../../apps/sandboxd/src/main.ts'),
        '--insecure',
        '--listen',
        address,
      ],
      {
        stdout: 'ignore',
        stderr: 'pipe',
      },
    )
    expect(await child.exited).toBe(2)
    expect(await new Response(child.stderr).text()).toContain('loopback')
  })
})

describe.skipIf(nobodyProblem !== undefined)('an unprivileged sandboxd', () => {
  const isRoot = process.getuid?.() === 0
  let directory = ''
  let daemon: RunningSandboxd

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sandwire-nobody-'))
    const secretFile = join(directory, 'secret')
    await writeFile(secretFile, mintHex(), { mode: 0o600 })
    chmodSync(directory, 0o777)
    if (isRoot) chownSync(secretFile, NOBODY, NOBODY)
    const prefix = isRoot ? AS_NOBODY : []
    daemon = await startSandboxd({
      program: [...prefix, process.execPath, join(import.meta.dir, '../../apps/sandboxd/src/main.ts')],
      args: ['--secret-file', secretFile, '--workspace', directory],
      env: { SANDWIRE_CANARY: CANARY, HOME: directory },
    })
    const secret = secretFile
    expect(await stat(secret).catch(() => undefined)).toBeUndefined()
  })
  afterAll(async () => {
    await daemon.stop()
    await rm(directory, { recursive: true, force: true })
  })

  test('denies processes of the same user its environment, memory and descriptors', async () => {
    const query = async (body: object) =>
      fetch(new URL('/sessions', daemon.url), { method: 'POST', body: JSON.stringify(body) })
    // This sandboxd has another secret, so the request is refused; the process is inspected from outside.
    expect((await query({})).status).toBe(401)
    const script = `cat /proc/${daemon.pid}/environ; cat /proc/${daemon.pid}/maps; ls /proc/${daemon.pid}/fd; cat /proc/${daemon.pid}/mem`
    const argv = isRoot ? [...AS_NOBODY, 'sh', '-c', script] : ['sh', '-c', script]
    const child = Bun.spawn(argv, { stdout: 'pipe', stderr: 'pipe' })
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    expect(stdout).toBe('')
    expect(stderr.match(/Permission denied/g)).toHaveLength(4)
  })
})
