import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, openRawTcp, upgradeRequest } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { RawSandbox } from './support/raw-sandbox.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'

let sandboxes: FakeSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  control = await startControl({ runner: sandboxes })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

const BEARER = ['Authorization', `Bearer ${TOKEN}`] as const

async function codeOf(response: Response): Promise<string> {
  const body: unknown = await response.json()
  return `${response.status} ${String(fieldOf(fieldOf(body, 'error'), 'code'))}`
}

/** Status line of the response to raw bytes. */
async function statusLineOf(port: number, bytes: string): Promise<string> {
  await using tcp = await openRawTcp({ port })
  await tcp.write(bytes)
  return new TextDecoder().decode(await tcp.read()).split('\r\n')[0] ?? ''
}

describe('a web page of another origin (threat T1)', () => {
  // An empty origin is not listed: workerd treats it as absent, which helps only clients with a bearer token.
  const origins = (port: number): string[] => [
    'https://evil.example',
    'null',
    `http://localhost.evil.com:${port}`,
    `http://evillocalhost:${port}`,
    `https://localhost:${port}`,
    `http://localhost:${port + 1}`,
    'http://localhost',
    `http://localhost.:${port}`,
    `HTTP://LOCALHOST:${port}`,
    `http://localhost:${port}@evil.com`,
    `http://localhost:${port}/`,
  ]

  test('gets no socket and starts nothing', async () => {
    const starts = sandboxes.starts
    for (const origin of origins(control.port)) {
      const headers = [BEARER, ['Origin', origin]] as const
      expect([origin, refusalOf(await upgrade(control, '/attach?cmd=cat', { headers }))]).toEqual([
        origin,
        '403 origin_refused',
      ])
    }
    const twice = [BEARER, ['Origin', control.origin], ['Origin', control.origin]] as const
    expect(refusalOf(await upgrade(control, '/attach?cmd=cat', { headers: twice }))).toBe(
      '403 origin_refused',
    )
    expect(sandboxes.starts).toBe(starts)
  })

  test('cannot use the API', async () => {
    for (const origin of origins(control.port))
      expect(await codeOf(await control.fetch('/api/sandboxes', { headers: { origin } }))).toBe(
        '403 origin_refused',
      )
  })

  test('is distinguished from our own page and from programs', async () => {
    for (const headers of [[BEARER], [BEARER, ['Origin', control.origin] as const]]) {
      const handshake = await upgrade(control, '/attach?sandbox=own&cmd=cat', { headers })
      expect(handshake.kind).toBe('open')
      if (handshake.kind === 'open') handshake.socket.reset()
    }
  })

  test('gets no permission to read answers from another origin', async () => {
    const response = await control.fetch('/api/sandboxes', { headers: { origin: control.origin } })
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    const requested = await control.fetch('/api/sandboxes', {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
    })
    expect(requested.status).toBe(403)
  })
})

describe('a frame (threat T1)', () => {
  test.each([
    ['/', 200],
    ['/signin', 200],
    ['/signin.js', 200],
    ['/page.css', 200],
    ['/join', 200],
    ['/signin/start', 303],
    ['/signin/callback', 400],
    ['/api/auth', 200],
    ['/api/sandboxes', 200],
    ['/api/openapi.json', 200],
    ['/api/none', 404],
    ['/api/whoami?x=1', 400],
    ['/assets/none.js', 404],
    ['/healthz', 200],
    ['/metrics', 200],
    ['/attach', 426],
  ])('cannot show %s', async (path, status) => {
    const response = await control.fetch(path)
    expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(response.status).toBe(status)
  })

  test('cannot show a refusal', async () => {
    for (const headers of [
      { host: 'evil.example' },
      { origin: 'https://evil.example' },
      { authorization: 'x' },
    ])
      expect(
        (await control.fetch('/api/whoami', { headers })).headers.get('content-security-policy'),
      ).toContain("frame-ancestors 'none'")
  })
})

describe('a rebound name (threat T10)', () => {
  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    '[::1]:9999',
    'localhost:80',
    'localhost',
  ])('is refused as host %j', async (host) => {
    for (const path of ['/health', '/api/sandboxes', '/', '/attach?cmd=cat'])
      expect(await codeOf(await control.fetch(path, { headers: { host } }))).toBe('421 host_refused')
  })

  test('is refused whatever host other headers claim', async () => {
    const claims = {
      'x-forwarded-host': `localhost:${control.port}`,
      'mf-original-url': control.origin,
      'cf-connecting-ip': '127.0.0.1',
      forwarded: `host=localhost:${control.port}`,
    }
    const headers = { host: 'evil.example', ...claims }
    expect(await codeOf(await control.fetch('/health', { headers }))).toBe('421 host_refused')
  })

  test('is refused without a host, with two, or with an absolute URL as path', async () => {
    const own = `Host: localhost:${control.port}\r\n`
    const rest = `Authorization: Bearer ${TOKEN}\r\nConnection: close\r\n\r\n`
    const line = 'GET /api/sandboxes HTTP/1.1\r\n'
    expect(await statusLineOf(control.port, line + own + rest)).toContain(' 200 ')
    for (const request of [
      line + rest,
      line + own + own + rest,
      `${line + own}Host: evil.example\r\n${rest}`,
      `GET http://evil.example/api/sandboxes HTTP/1.1\r\n${own}${rest}`,
    ])
      expect(await statusLineOf(control.port, request)).toMatch(/ (400|421|500) /)
  })
})

describe('a credential', () => {
  test.each([
    ['none', {}],
    ['another token', { authorization: `Bearer swl_${'x'.repeat(43)}` }],
    ['part of the token', { authorization: `Bearer ${TOKEN.slice(0, -1)}` }],
    ['the token in another case', { authorization: `Bearer ${TOKEN.toUpperCase()}` }],
    ['more than the token', { authorization: `Bearer ${TOKEN}t` }],
    [
      'the hash of the token',
      { authorization: `Bearer ${new Bun.CryptoHasher('sha256').update(TOKEN).digest('hex')}` },
    ],
    ['another scheme', { authorization: `Basic ${TOKEN}` }],
    ['given twice', { authorization: `Bearer ${TOKEN}, Bearer ${TOKEN}` }],
    ['a forged cookie', { cookie: `__Host-sandwire=sws_local.${'x'.repeat(43)}` }],
    ['a malformed cookie', { cookie: '__Host-sandwire=x' }],
  ])('that is %s is accepted for health routes only', async (_, headers) => {
    const init = { headers: { authorization: '', ...headers } }
    const bare = (path: string): Promise<Response> => {
      const { authorization, ...others } = init.headers
      return control.fetch(path, {
        headers: authorization === '' ? { ...others, authorization: '' } : init.headers,
      })
    }
    for (const path of [
      '/api/sandboxes',
      '/api/account/sessions',
      '/logs/dev',
      '/metrics',
      '/attach',
      '/api/openapi.json',
    ])
      expect([path, (await bare(path)).status]).toEqual([path, 401])
    expect((await bare('/health')).status).toBe(200)
  })

  test('in the URL is refused everywhere and never logged (threat T2)', async () => {
    for (const path of ['/health', '/api/sandboxes', '/attach', '/logs/dev', '/nowhere'])
      expect(await codeOf(await control.fetch(`${path}?token=CANARY-1`))).toBe('400 bad_request')
    expect(refusalOf(await upgrade(control, '/attach?token=CANARY-2'))).toBe('400 bad_request')
    await control.fetch('/CANARY-3', { headers: { authorization: 'Bearer CANARY-4', cookie: 'CANARY-5' } })
    await control.fetch('/api/sandboxes', { method: 'POST', json: { env: { A: 'CANARY-6' }, start: false } })
    await eventually(() => control.log.some((line) => line.includes('"method":"POST"')), { what: 'the log' })
    expect(control.log.join('\n')).not.toContain('CANARY')
    expect(control.log.join('\n')).not.toContain(TOKEN)
  })

  test('that is missing is reported over HTTP, also to a client that reads frames', async () => {
    const options = { headers: [], subprotocols: ['sandwire.v1'] }
    for (const [path, refusal] of [
      ['/attach?cmd=cat', '401 unauthorized'],
      ['/attach?bogus=1', '401 unauthorized'],
      ['/attach?token=x', '400 bad_request'],
      ['/nowhere', '404 not_found'],
    ] as const)
      expect(refusalOf(await upgrade(control, path, options))).toBe(refusal)
  })

  test('guessed too often is no longer verified, while a valid one still works', async () => {
    const guess = (): Promise<Response> =>
      control.fetch('/api/sandboxes', { headers: { authorization: 'Bearer wrong' } })
    const statuses = await Promise.all(Array.from({ length: 400 }, async () => (await guess()).status))
    expect(statuses).toContain(429)
    expect((await control.fetch('/api/sandboxes')).status).toBe(200)
  })
})

describe("miniflare's own port", () => {
  test('serves nothing', async () => {
    const url = await control.developmentUrl
    for (const path of ['/', '/health', '/api/sandboxes'])
      expect(
        (await fetch(new URL(path, url), { headers: { authorization: `Bearer ${TOKEN}` } })).status,
      ).toBe(404)
  })
})

describe('a path in a noncanonical spelling (threat T7)', () => {
  test.each([
    'a/../b',
    'A%2fb',
    'a%00b',
    '__proto__',
    'constructor',
    'a'.repeat(64),
    '%C3%A9',
    'e%CC%81',
    'Dev',
    ' dev',
    'dev%0a',
  ])('names no sandbox: %s', async (ref) => {
    const calls = control.host.calls.length
    for (const path of [`/api/sandboxes/${ref}`, `/logs/${ref}`, `/api/account/sessions/${ref}`])
      expect([400, 404]).toContain((await control.fetch(path)).status)
    expect([400, 404]).toContain((await control.fetch(`/terminal/${ref}`)).status)
    expect(control.host.calls).toHaveLength(calls)
  })

  test.each(['bytes=-1', 'bytes=1e3', 'bytes=+1', 'bytes=０', 'bytes=1&bytes=2', 'other=1', 'bytes='])(
    'returns no log: %s',
    async (query) => {
      await control.fetch('/api/sandboxes', { method: 'POST', json: { name: 'loggy', start: false } })
      expect(await codeOf(await control.fetch(`/logs/loggy?${query}`))).toBe('400 bad_request')
    },
  )

  test.each([
    '{"name":"dev","extra":1}',
    '{"name":"Dev"}',
    '{"name":"00000000000000000000000000000000"}',
    '{"network":{"policy":"all"}}',
    '{"limits":{"pids":1e9}}',
    '{"limits":{"pids":"8"}}',
    '{"env":{"A=B":"x"}}',
    '{"env":{"__proto__":{"a":1}}}',
    '{"__proto__":{"name":"dev"}}',
    '{"sleepAfterSeconds":0}',
    '[]',
    'null',
    '{',
    '',
  ])('creates no sandbox: %s', async (body) => {
    const headers = { 'content-type': 'application/json' }
    const response = await control.fetch('/api/sandboxes', { method: 'POST', body, headers })
    expect(await codeOf(response)).toBe('400 bad_request')
  })

  test('a body without the JSON media type is refused', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', '']) {
      const init = { method: 'POST', body: '{"name":"typed"}', headers: { 'content-type': type } }
      expect(await codeOf(await control.fetch('/api/sandboxes', init))).toBe('400 bad_request')
    }
  })

  test('a body over the limit is not read', async () => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'x'.repeat(300 * 1024) })
    expect(await codeOf(await control.fetch('/api/sandboxes', { method: 'POST', body, headers }))).toBe(
      '413 frame_too_large',
    )
  })

  test.each(['zz\r\n', '1\r\n{}\r\n'])(
    'a body with malformed framing is refused as malformed, not as too large: %j',
    async (rest) => {
      const head = `POST /api/sandboxes HTTP/1.1\r\nHost: localhost:${control.port}\r\nAuthorization: Bearer ${TOKEN}\r\n`
      const chunked = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n'
      expect(await statusLineOf(control.port, `${head}${chunked}${rest}`)).toBe('HTTP/1.1 400 Bad Request')
    },
  )
})

describe('a body that does not end (threat T22)', () => {
  const unfinished = (path: string, headers: string, bytes: number): string =>
    `POST ${path} HTTP/1.1\r\nHost: localhost:${control.port}\r\nContent-Type: application/json\r\n${headers}` +
    `Transfer-Encoding: chunked\r\n\r\n${bytes.toString(16)}\r\n${'a'.repeat(bytes)}\r\n`

  test('is not read from an unauthenticated client', async () => {
    const line = await statusLineOf(control.port, unfinished('/api/sandboxes', '', 100_000))
    // 429 when the limit of unauthenticated requests was reached.
    expect(['HTTP/1.1 401 Unauthorized', 'HTTP/1.1 429 Too Many Requests']).toContain(line)
  })

  test('is not buffered beyond the limit of the route', async () => {
    const head = `Authorization: Bearer ${TOKEN}\r\n`
    expect(await statusLineOf(control.port, unfinished('/api/sandboxes', head, 300_000))).toStartWith(
      'HTTP/1.1 413',
    )
    expect(await statusLineOf(control.port, unfinished('/api/signin', '', 20_000))).toStartWith(
      'HTTP/1.1 413',
    )
  })
})

describe('a malformed handshake (threat T8)', () => {
  const bent = (port: number, change: (request: string) => string): string =>
    change(
      upgradeRequest({
        port,
        path: '/attach?sandbox=bent&cmd=cat',
        headers: { Authorization: `Bearer ${TOKEN}` },
      }),
    )

  test.each([
    ['another version', (text: string) => text.replace('Version: 13', 'Version: 777')],
    ['two protocols', (text: string) => text.replace('Upgrade: websocket', 'Upgrade: h2c, websocket')],
    ['no key', (text: string) => text.replace(/Sec-WebSocket-Key: .*\r\n/, '')],
    ['a short key', (text: string) => text.replace(/Sec-WebSocket-Key: .*\r\n/, 'Sec-WebSocket-Key: x\r\n')],
    ['a body', (text: string) => `${text.replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\n')}hello`],
  ])('with %s starts nothing', async (_, change) => {
    const starts = sandboxes.starts
    expect(await statusLineOf(control.port, bent(control.port, change))).toMatch(/ (400|426) /)
    expect(sandboxes.starts).toBe(starts)
  })
})

describe('a response of a sandbox that is not a 101 (threat T8)', () => {
  let raw: RawSandbox
  let other: RunningControl
  beforeAll(async () => {
    raw = new RawSandbox()
    other = await startControl({ runner: raw })
  })
  afterAll(async () => {
    await other[Symbol.asyncDispose]()
    await raw[Symbol.asyncDispose]()
  })

  const body = 'RAW-SECRET'
  const answers: readonly [string, string][] = [
    ['200', `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['301', `HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n`],
    ['400', `HTTP/1.1 400 Bad\r\nX-Raw: ${body}\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['426', `HTTP/1.1 426 No\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['500', `HTTP/1.1 500 No\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['garbage', `${body}\r\n\r\n`],
    ['half a header', `HTTP/1.1 101 Switching Protocols\r\nUpgr`],
    ['a 101 without a handshake', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    [
      'a 101 for another key',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n',
    ],
    [
      'a code of ours with foreign words',
      (() => {
        const json = JSON.stringify({ error: { code: 'conflict', message: body, request_id: body } })
        return `HTTP/1.1 409 No\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`
      })(),
    ],
  ]

  test.each(answers)('becomes an error with none of its bytes: %s', async (name, answer) => {
    raw.answer = answer
    raw.attaches = 0
    const sandbox = `raw-${answers.findIndex(([each]) => each === name)}`
    await using tcp = await openRawTcp({ port: other.port })
    const path = `/attach?sandbox=${sandbox}&cmd=cat`
    await tcp.write(upgradeRequest({ port: other.port, path, headers: { Authorization: `Bearer ${TOKEN}` } }))
    if (name === 'half a header') {
      // Never completes; stopping the sandbox is faster than control's timeout.
      await eventually(() => raw.attaches > 0, { what: 'the attach' })
      await raw.stop()
    }
    const text = new TextDecoder().decode(await tcp.read())
    expect(text).toMatch(/^HTTP\/1\.1 (502|409) /)
    expect(text).not.toContain('RAW')
    const echoed = 'ECHO-ME'
    await tcp.write(echoed).catch(() => undefined)
    tcp.endWriting()
    const rest = await tcp.read()
    expect(new TextDecoder().decode(rest ?? new Uint8Array())).not.toContain(echoed)
  })
})

test('a redirect of a sandbox is not followed (threat T8)', async () => {
  let visits = 0
  const witness = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => {
      visits += 1
      return new Response('')
    },
  })
  await using raw = new RawSandbox()
  await using other = await startControl({ runner: raw })
  raw.answer = `HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:${witness.port}/\r\nContent-Length: 0\r\n\r\n`
  expect(refusalOf(await upgrade(other, '/attach?sandbox=raw&cmd=cat'))).toBe('502 sandbox_unreachable')
  expect(visits).toBe(0)
  await witness.stop(true)
})

describe('an error (threat T46)', () => {
  test('has a code, our own message and the request id, whatever failed', async () => {
    await using boxes = new FakeSandboxes()
    await using other = await startControl({ runner: boxes })
    await other.fetch('/api/sandboxes', { method: 'POST', json: { name: 'dev' } })
    boxes.intercept = () =>
      new Response('RAW stack at /secret/path', { status: 500, headers: { 'x-raw': 'RAW' } })
    const faults = [
      await other.fetch('/api/sandboxes/dev/sessions', { method: 'POST', json: { cmd: 'cat' } }),
      await other.fetch('/api/sandboxes/dev/exec', { method: 'POST', json: { cmd: 'cat' } }),
    ]
    other.host.intercept = () => new Response('RAW stack at /secret/path', { status: 500 })
    faults.push(
      await other.fetch('/api/sandboxes', { method: 'POST', json: { name: 'new' } }),
      await other.fetch('/api/sandboxes/dev/start', { method: 'POST' }),
      await other.fetch('/api/sandboxes/dev/stop', { method: 'POST' }),
      await other.fetch('/logs/dev'),
      await other.fetch('/api/sandboxes/dev', { method: 'DELETE' }),
    )
    for (const response of faults) {
      const text = await response.text()
      expect([502, 503]).toContain(response.status)
      expect(text).not.toContain('RAW')
      const body: unknown = JSON.parse(text)
      expect(body).toEqual({
        error: {
          code: expect.stringMatching(/^[a-z_]+$/),
          message: expect.any(String),
          request_id: response.headers.get('x-request-id'),
        },
      })
      expect([...response.headers.keys()].sort()).toEqual([
        'cache-control',
        'content-length',
        'content-security-policy',
        'content-type',
        'referrer-policy',
        'x-content-type-options',
        'x-request-id',
      ])
    }
    const ready = await other.fetch('/readyz')
    expect(ready.status).toBe(503)
    expect(await ready.json()).toMatchObject({
      status: 'unavailable',
      dependencies: { provider: { status: 'unavailable', breaker: 'open', code: 'provider_unavailable' } },
    })
    expect(await other.metric('sandwire_breaker_open')).toBeGreaterThan(0)
  })
})
