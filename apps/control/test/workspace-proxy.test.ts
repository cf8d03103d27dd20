import { describe, expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { responseHeaders, contentLength, requestHeaders } from '../src/workspace-proxy/headers.ts'
import { splitQuery } from '../src/workspace-proxy/query.ts'
import { isCompatPath } from '../src/compat/workspace-routes.ts'
import { isProxiedPath, nameOfRoute, PROXY_ROUTES } from '../src/workspace-proxy/routes.ts'
import { WorkspaceBudget } from '../src/http/rate-limits.ts'

import { Breakers, FAILURES_TO_OPEN, OPEN_MS } from '../src/providers/breaker.ts'
import { ProxiedRequests } from '../src/workspace-proxy/requests.ts'
import { readUpstreamError } from '../src/workspace-proxy/errors.ts'

const NOW = 1_700_000_000_000

describe('the table of proxied routes', () => {
  test('has unique names and only workspace paths', () => {
    const names = PROXY_ROUTES.map(nameOfRoute)
    expect(new Set(names).size).toBe(names.length)
    expect(PROXY_ROUTES.filter(({ upstream }) => !upstream.startsWith('/workspace/'))).toEqual([])
    expect(PROXY_ROUTES.filter(({ path }) => !isProxiedPath(path))).toEqual([])
  })

  test('audits every change and never repeats one', () => {
    for (const { method, access, action, isIdempotent } of PROXY_ROUTES) {
      expect([action === undefined, isIdempotent]).toEqual(method === 'GET' ? [true, true] : [false, false])
      if (method !== 'GET') expect(access).toBe('change')
    }
  })

  test('knows the paths whose errors have the compat format', () => {
    expect(isCompatPath('/api/file/rename')).toBe(true)
    expect(isCompatPath('/api/sessions')).toBe(true)
    expect(isCompatPath('/api/workspaces/dev/file')).toBe(false)
    expect(isCompatPath('/api/sandboxes')).toBe(false)
  })
})

describe('splitQuery', () => {
  const route = { parameters: { path: '', glob: '' }, repeatable: ['glob'], api: 'compat' } as const
  const split = (search: string) => splitQuery(route, search)

  test('passes the query on unchanged, without the sandbox parameter (threat T12)', () => {
    const search = '?path=a%FF%2fb+c%00&sandbox=dev&glob=*.ts&glob=!x'
    expect(split(search)).toEqual({ sandbox: 'dev', rest: 'path=a%FF%2fb+c%00&glob=*.ts&glob=!x' })
    expect(split('')).toEqual({ sandbox: undefined, rest: '' })
  })

  test('refuses unknown, duplicate and percent-encoded names (threat T35)', () => {
    for (const search of ['?x=1', '?toString=1', '?p%61th=a', '?%73andbox=dev', '?sandbox=a&sandbox=b']) {
      expect(() => split(search)).toThrow(SandwireError)
    }
    expect(() => split('?path=a&path=b')).toThrow('given twice')
    expect(() => split(`?path=${'%41'.repeat(5_000)}`)).toThrow('more than')
    expect(() => splitQuery({ ...route, api: 'native' }, '?sandbox=dev')).toThrow('unknown')
  })
})

describe('headers', () => {
  test('of a request are passed on only when they are about a file (threat T46)', () => {
    const headers = new Headers({
      authorization: 'Bearer x',
      cookie: 'a=b',
      connection: 'x-hop',
      'x-hop': '1',
      host: 'evil.example',
      'transfer-encoding': 'chunked',
      te: 'trailers',
      upgrade: 'h2c',
      'x-sandwire-call': '{}',
      range: 'bytes=0-1',
      'if-match': '"a"',
      'if-none-match': '*',
      'if-range': '"a"',
    })
    expect(requestHeaders(headers)).toEqual({
      range: 'bytes=0-1',
      'if-match': '"a"',
      'if-none-match': '*',
      'if-range': '"a"',
    })
  })

  test('that are malformed are reported, not dropped', () => {
    expect(requestHeaders(new Headers({ range: 'lines=1' }))).toEqual({ malformed: 'range' })
    expect(requestHeaders(new Headers({ 'if-match': `"${'x'.repeat(2_000)}"` }))).toEqual({
      malformed: 'if-match',
    })
  })

  test('of a response are passed on only when well-formed', () => {
    const date = 'Sun, 06 Nov 1994 08:49:37 GMT'
    const good = { etag: '"a-1"', 'content-range': 'bytes 0-1/9', 'accept-ranges': 'bytes' }
    const bad = { 'set-cookie': 'a=b', location: '/x', server: 'y', 'access-control-allow-origin': '*' }
    const headers = new Headers({ ...good, 'last-modified': date, ...bad })
    expect(responseHeaders(headers)).toEqual({ ...good, 'last-modified': date })
    expect(responseHeaders(new Headers({ etag: 'W/"x"', 'content-range': 'bytes 0-1/*x' }))).toEqual({})
  })

  test('have a content-length of decimal digits or none', () => {
    expect(contentLength(new Headers())).toBeUndefined()
    expect(contentLength(new Headers({ 'content-length': '12' }))).toBe(12)
    for (const text of ['-1', '1e3', '0x10', '1, 1', '9'.repeat(16)])
      expect(contentLength(new Headers({ 'content-length': text }))).toBeNaN()
  })
})

describe('a breaker per key', () => {
  test('opens and closes independently, and summarizes the worst state', () => {
    const breakers = new Breakers()
    for (let times = 0; times < FAILURES_TO_OPEN; times += 1) breakers.failed('a', NOW)
    expect(breakers.admit('a', NOW)).toBe(false)
    expect(breakers.admit('b', NOW)).toBe(true)
    expect(breakers.summary(NOW)).toEqual({ worst: 'open', open: 1 })
    expect(breakers.admit('a', NOW + OPEN_MS)).toBe(true)
    expect(breakers.summary(NOW + OPEN_MS)).toEqual({ worst: 'half-open', open: 0 })
    breakers.succeeded('a')
    expect(breakers.summary(NOW)).toEqual({ worst: 'closed', open: 0 })
  })

  test('is dropped when unused, and the number of keys is bounded', () => {
    const breakers = new Breakers()
    for (let times = 0; times < FAILURES_TO_OPEN; times += 1) breakers.failed('gone', NOW)
    expect(breakers.summary(NOW + 61_000)).toEqual({ worst: 'closed', open: 0 })
    for (let times = 0; times < FAILURES_TO_OPEN; times += 1) breakers.failed('first', NOW)
    for (let each = 0; each < 1_000; each += 1) breakers.failed(`other-${each}`, NOW)
    expect(breakers.admit('first', NOW)).toBe(true)
  })
})

describe('open proxied requests', () => {
  const reasonOf = (signal: AbortSignal): string =>
    signal.reason instanceof SandwireError ? signal.reason.code : ''

  test('are aborted when their authorization is revoked, others are not (threat T6)', () => {
    const requests = new ProxiedRequests()
    const ann = requests.open({ identity: 'ann', login: 'l1', grant: 'g1' })
    const phone = requests.open({ identity: 'ann', login: 'l2', grant: 'g1' })
    const bob = requests.open({ identity: 'bob', login: 'l1' })
    requests.revoke({ identity: 'ann', session: 's' })
    expect(requests.size).toBe(3)
    requests.revoke({ identity: 'ann', login: 'l1' })
    expect([ann, phone, bob].map(({ signal }) => reasonOf(signal))).toEqual(['revoked', '', ''])
    requests.revoke({ grant: 'g1' })
    expect([phone, bob].map(({ signal }) => reasonOf(signal))).toEqual(['revoked', ''])
    bob.end()
    expect(requests.size).toBe(0)
  })

  test('are limited per account', () => {
    const requests = new ProxiedRequests()
    const own = Array.from({ length: 64 }, () => requests.open({ identity: 'ann' }))
    expect(() => requests.open({ identity: 'ann' })).toThrow('Too many')
    requests.open({ identity: 'bob' })
    own[0]?.end()
    requests.open({ identity: 'ann' })
  })
})

test('limits the cost of requests per account and returns when to retry', () => {
  const budget = new WorkspaceBudget(60)
  for (let times = 0; times < 6; times += 1) budget.take('ann', 10, NOW)
  try {
    budget.take('ann', 5, NOW)
    expect.unreachable()
  } catch (caught) {
    expect(caught).toMatchObject({ code: 'rate_limited', retryAfterMs: 5_000 })
  }
  budget.take('ann', 0, NOW)
  budget.take('bob', 10, NOW)
  budget.take('ann', 5, NOW + 5_000)
  new WorkspaceBudget(0).take('ann', 1_000, NOW)
})

describe('an error response of sandboxd', () => {
  const { signal } = new AbortController()
  const native = { api: 'native', isHead: false, signal } as const
  const compat = { api: 'compat', isHead: false, signal } as const
  const respond = (status: number, body: unknown, headers = {}): Response =>
    Response.json(body, { status, headers })
  const error = (status: number, code: string, message: string): Response =>
    respond(status, { error: { code, message } })

  test('keeps its message when that is printable, and gets ours otherwise (threat T24)', async () => {
    const parsed = await readUpstreamError(
      error(404, 'file_not_found', 'Cannot read "a": no such file'),
      native,
    )
    expect(parsed).toMatchObject({
      error: { code: 'file_not_found', message: 'Cannot read "a": no such file' },
    })
    for (const text of ['a\u202eb', 'a\nb', 'a\u001b[2J', 'a\u2028b', '', 'x'.repeat(1_001), 'a\udc80'])
      expect(await readUpstreamError(error(404, 'file_not_found', text), native)).toMatchObject({
        error: { code: 'file_not_found', message: 'The file does not exist' },
      })
  })

  test('must have a known code with its own status, else the sandbox is unreachable (threat T46)', async () => {
    for (const response of [
      error(500, 'internal', 'RAW'),
      error(404, 'unheard_of', 'RAW'),
      error(404, 'toString', 'RAW'),
      error(403, 'file_not_found', 'RAW'),
      error(401, 'unauthorized', 'RAW'),
      respond(400, 'RAW'),
      new Response('<h1>RAW', { status: 404 }),
      new Response(null, { status: 302, headers: { location: 'http://evil.example' } }),
      respond(400, { error: { code: 'bad_request', message: 'x', pad: 'x'.repeat(70_000) } }),
    ]) {
      const parsed = await readUpstreamError(response, native)
      expect(parsed).toMatchObject({ error: { code: 'sandbox_unreachable' } })
      expect(JSON.stringify(parsed)).not.toContain('RAW')
    }
    expect(await readUpstreamError(new Response('RAW', { status: 503 }), native)).toMatchObject({
      error: { code: 'workspace_unavailable' },
    })
  })

  test('keeps retry-after', async () => {
    const response = error(429, 'rate_limited', 'RAW')
    response.headers.set('retry-after', '7')
    expect(await readUpstreamError(response, native)).toMatchObject({
      error: { code: 'rate_limited', message: 'Too many requests', retryAfterMs: 7_000 },
    })
  })

  test('reports an old sandboxd when the route is missing', async () => {
    expect(await readUpstreamError(error(404, 'not_found', 'x'), native)).toMatchObject({
      error: { code: 'version_unsupported' },
    })
  })

  test('includes the current state of a changed file', async () => {
    const current = { etag: '"b"', size: 3, mtimeMs: 1.5 }
    const body = {
      error: { code: 'file_changed', message: 'It has changed', current: { ...current, RAW: 1 } },
    }
    const parsed = await readUpstreamError(respond(412, body), native)
    expect(parsed.kind === 'body' && parsed.body('r')).toEqual({
      error: { code: 'file_changed', message: 'It has changed', request_id: 'r', current },
    })
  })

  test('includes the reason of a git failure, but no reason it does not know', async () => {
    const error = { code: 'git_failed', message: 'Cannot commit' }
    const known = respond(409, { error: { ...error, reason: 'author_unknown' } })
    const parsed = await readUpstreamError(known, native)
    expect(parsed.kind === 'body' && parsed.body('r')).toEqual({
      error: { ...error, request_id: 'r', reason: 'author_unknown' },
    })
    const unknown = respond(409, { error: { ...error, reason: 'RAW' } })
    expect(await readUpstreamError(unknown, native)).toMatchObject({ kind: 'error', error })
  })

  test('includes the offset at which an upload continues', async () => {
    const error = { code: 'conflict', message: 'It goes on elsewhere' }
    const parsed = await readUpstreamError(respond(409, { error, received: 7 }), native)
    expect(parsed.kind === 'body' && parsed.body('r')).toEqual({
      error: { ...error, request_id: 'r' },
      received: 7,
    })
  })

  test('of the compat API has its code in a header or by its status', async () => {
    const code = { 'x-sandwire-code': 'is_a_folder' }
    expect(
      await readUpstreamError(respond(400, { detail: 'Path is a directory: a' }, code), compat),
    ).toMatchObject({
      error: { code: 'is_a_folder', message: 'Path is a directory: a' },
    })
    expect(await readUpstreamError(respond(409, { detail: 'Target exists: a' }), compat)).toMatchObject({
      error: { code: 'file_exists', message: 'Target exists: a' },
    })
    expect(await readUpstreamError(respond(500, { detail: 'RAW' }), compat)).toMatchObject({
      error: { code: 'sandbox_unreachable' },
    })
    for (const status of [415, 500]) {
      const parsed = await readUpstreamError(
        respond(status, { detail: 'Write failed: a', RAW: 1 }, code),
        compat,
      )
      expect(parsed.kind === 'body' && [parsed.code, parsed.body('r')]).toEqual([
        'is_a_folder',
        { detail: 'Write failed: a' },
      ])
    }
    for (const [detail, code] of [
      ['RAW', 'internal'],
      ['RAW\n', 'is_a_folder'],
    ])
      expect(
        await readUpstreamError(respond(500, { detail }, { 'x-sandwire-code': code }), compat),
      ).toMatchObject({
        error: { code: 'sandbox_unreachable' },
      })
    const detail = [{ type: 'missing', loc: ['query', 'path'], msg: 'Field required', input: null }]
    const parsed = await readUpstreamError(
      respond(422, { detail: detail.map((one) => ({ ...one, RAW: 1 })) }),
      compat,
    )
    expect(parsed.kind === 'body' && parsed.body('r')).toEqual({ detail })
  })

  test('to HEAD is classified by its status alone', async () => {
    const head = { api: 'native', isHead: true, signal } as const
    expect(await readUpstreamError(new Response(null, { status: 404 }), head)).toMatchObject({
      error: { code: 'file_not_found' },
    })
    expect(await readUpstreamError(new Response(null, { status: 500 }), head)).toMatchObject({
      error: { code: 'sandbox_unreachable' },
    })
  })
})
