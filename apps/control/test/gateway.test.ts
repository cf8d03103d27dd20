import { describe, expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { answerHeaders, lengthOf, requestHeaders } from '../src/gateway/headers.ts'
import { splitQuery } from '../src/gateway/query.ts'
import { isCompatPath } from '../src/compat/workspace-routes.ts'
import { GATEWAY, isGatewayPath, nameOfRoute } from '../src/gateway/table.ts'
import { WorkspaceBudget } from '../src/http/workspace-budget.ts'
import { Breakers } from '../src/providers/breakers.ts'
import { FAILURES_TO_OPEN, OPEN_MS } from '../src/providers/breaker.ts'
import { Transfers } from '../src/sandbox/transfers.ts'
import { readTold } from '../src/sandbox/workspace-errors.ts'

const NOW = 1_700_000_000_000

describe('the table of the gateway', () => {
  test('names every route once, and leads nowhere but into workspaces', () => {
    const names = GATEWAY.map(nameOfRoute)
    expect(new Set(names).size).toBe(names.length)
    expect(GATEWAY.filter(({ upstream }) => !upstream.startsWith('/workspace/'))).toEqual([])
    expect(GATEWAY.filter(({ path }) => !isGatewayPath(path))).toEqual([])
  })

  test('has a name in the audit for what changes, and never asks for that twice', () => {
    for (const { method, does, action, isIdempotent } of GATEWAY) {
      expect([action === undefined, isIdempotent]).toEqual(method === 'GET' ? [true, true] : [false, false])
      if (method !== 'GET') expect(does).toBe('change')
    }
  })

  test('says which paths have errors in the shape of the contract', () => {
    expect(isCompatPath('/api/file/rename')).toBe(true)
    expect(isCompatPath('/api/sessions')).toBe(true)
    expect(isCompatPath('/api/workspaces/dev/file')).toBe(false)
    expect(isCompatPath('/api/sandboxes')).toBe(false)
  })
})

describe('the query of a request about files', () => {
  const route = { parameters: { path: '', glob: '' }, repeatable: ['glob'], api: 'compat' } as const
  const split = (search: string) => splitQuery(route, search)

  test('goes on as it was sent, without the sandbox that it names (threat T12)', () => {
    const search = '?path=a%FF%2fb+c%00&sandbox=dev&glob=*.ts&glob=!x'
    expect(split(search)).toEqual({ sandbox: 'dev', rest: 'path=a%FF%2fb+c%00&glob=*.ts&glob=!x' })
    expect(split('')).toEqual({ sandbox: undefined, rest: '' })
  })

  test('is refused with a name that is not known, given twice, or spelled another way (threat T35)', () => {
    for (const search of ['?x=1', '?toString=1', '?p%61th=a', '?%73andbox=dev', '?sandbox=a&sandbox=b']) {
      expect(() => split(search)).toThrow(SandwireError)
    }
    expect(() => split('?path=a&path=b')).toThrow('given twice')
    expect(() => split(`?path=${'%41'.repeat(5_000)}`)).toThrow('more than')
    expect(() => splitQuery({ ...route, api: 'native' }, '?sandbox=dev')).toThrow('unknown')
  })
})

describe('headers', () => {
  test('of a request go along when they are about a file, and no others (threat T46)', () => {
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

  test('that are malformed are refused: without its condition it would be another request', () => {
    expect(requestHeaders(new Headers({ range: 'lines=1' }))).toEqual({ malformed: 'range' })
    expect(requestHeaders(new Headers({ 'if-match': `"${'x'.repeat(2_000)}"` }))).toEqual({
      malformed: 'if-match',
    })
  })

  test('of an answer come back when they are spelled as they should be', () => {
    const date = 'Sun, 06 Nov 1994 08:49:37 GMT'
    const good = { etag: '"a-1"', 'content-range': 'bytes 0-1/9', 'accept-ranges': 'bytes' }
    const bad = { 'set-cookie': 'a=b', location: '/x', server: 'y', 'access-control-allow-origin': '*' }
    const headers = new Headers({ ...good, 'last-modified': date, ...bad })
    expect(answerHeaders(headers)).toEqual({ ...good, 'last-modified': date })
    expect(answerHeaders(new Headers({ etag: 'W/"x"', 'content-range': 'bytes 0-1/*x' }))).toEqual({})
  })

  test('say a length in digits, or none', () => {
    expect(lengthOf(new Headers())).toBeUndefined()
    expect(lengthOf(new Headers({ 'content-length': '12' }))).toBe(12)
    for (const text of ['-1', '1e3', '0x10', '1, 1', '9'.repeat(16)])
      expect(lengthOf(new Headers({ 'content-length': text }))).toBeNaN()
  })
})

describe('breakers of many', () => {
  test('open and close each on its own, and say what the worst is', () => {
    const breakers = new Breakers()
    for (let times = 0; times < FAILURES_TO_OPEN; times += 1) breakers.failed('a', NOW)
    expect(breakers.admit('a', NOW)).toBe(false)
    expect(breakers.admit('b', NOW)).toBe(true)
    expect(breakers.summary(NOW)).toEqual({ worst: 'open', open: 1 })
    expect(breakers.admit('a', NOW + OPEN_MS)).toBe(true)
    expect(breakers.summary(NOW + OPEN_MS)).toEqual({ worst: 'half_open', open: 0 })
    breakers.succeeded('a')
    expect(breakers.summary(NOW)).toEqual({ worst: 'closed', open: 0 })
  })

  test('are forgotten when nobody asks any more, and never pile up', () => {
    const breakers = new Breakers()
    for (let times = 0; times < FAILURES_TO_OPEN; times += 1) breakers.failed('gone', NOW)
    expect(breakers.summary(NOW + 61_000)).toEqual({ worst: 'closed', open: 0 })
    for (let times = 0; times < FAILURES_TO_OPEN; times += 1) breakers.failed('first', NOW)
    for (let each = 0; each < 1_000; each += 1) breakers.failed(`other-${each}`, NOW)
    expect(breakers.admit('first', NOW)).toBe(true)
  })
})

describe('requests that are under way', () => {
  const reasonOf = (signal: AbortSignal): string =>
    signal.reason instanceof SandwireError ? signal.reason.code : ''

  test('end when what they hang on is withdrawn, and no others do (threat T6)', () => {
    const transfers = new Transfers()
    const ann = transfers.open({ identity: 'ann', login: 'l1', grant: 'g1' })
    const phone = transfers.open({ identity: 'ann', login: 'l2', grant: 'g1' })
    const bob = transfers.open({ identity: 'bob', login: 'l1' })
    transfers.cut({ identity: 'ann', session: 's' })
    expect(transfers.size).toBe(3)
    transfers.cut({ identity: 'ann', login: 'l1' })
    expect([ann, phone, bob].map(({ signal }) => reasonOf(signal))).toEqual(['revoked', '', ''])
    transfers.cut({ grant: 'g1' })
    expect([phone, bob].map(({ signal }) => reasonOf(signal))).toEqual(['revoked', ''])
    bob.end()
    expect(transfers.size).toBe(0)
  })

  test('are not more than so many of one person', () => {
    const transfers = new Transfers()
    const own = Array.from({ length: 64 }, () => transfers.open({ identity: 'ann' }))
    expect(() => transfers.open({ identity: 'ann' })).toThrow('at once')
    transfers.open({ identity: 'bob' })
    own[0]?.end()
    transfers.open({ identity: 'ann' })
  })
})

test('a person has a budget by what requests cost, and is told when there is more', () => {
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

describe('what sandboxd says went wrong', () => {
  const { signal } = new AbortController()
  const newer = { api: 'native', isHead: false, signal } as const
  const contract = { api: 'compat', isHead: false, signal } as const
  const say = (status: number, body: unknown, headers = {}): Response =>
    Response.json(body, { status, headers })
  const error = (status: number, code: string, message: string): Response =>
    say(status, { error: { code, message } })

  test('is told in its own words when they are harmless, and else in ours (threat T24)', async () => {
    const told = await readTold(error(404, 'file_not_found', 'Cannot read "a": no such file'), newer)
    expect(told).toMatchObject({
      error: { code: 'file_not_found', message: 'Cannot read "a": no such file' },
    })
    for (const text of ['a\u202eb', 'a\nb', 'a\u001b[2J', 'a\u2028b', '', 'x'.repeat(1_001), 'a\udc80'])
      expect(await readTold(error(404, 'file_not_found', text), newer)).toMatchObject({
        error: { code: 'file_not_found', message: 'Cannot find the file' },
      })
  })

  test('is one of a closed list with its own status, and else a broken sandbox (threat T46)', async () => {
    for (const response of [
      error(500, 'internal', 'RAW'),
      error(404, 'unheard_of', 'RAW'),
      error(404, 'toString', 'RAW'),
      error(403, 'file_not_found', 'RAW'),
      error(401, 'unauthorized', 'RAW'),
      say(400, 'RAW'),
      new Response('<h1>RAW', { status: 404 }),
      new Response(null, { status: 302, headers: { location: 'http://evil.example' } }),
      say(400, { error: { code: 'bad_request', message: 'x', pad: 'x'.repeat(70_000) } }),
    ]) {
      const told = await readTold(response, newer)
      expect(told).toMatchObject({ error: { code: 'sandbox_unreachable' } })
      expect(JSON.stringify(told)).not.toContain('RAW')
    }
    expect(await readTold(new Response('RAW', { status: 503 }), newer)).toMatchObject({
      error: { code: 'workspace_unavailable' },
    })
  })

  test('says how long to wait', async () => {
    const response = error(429, 'rate_limited', 'RAW')
    response.headers.set('retry-after', '7')
    expect(await readTold(response, newer)).toMatchObject({
      error: { code: 'rate_limited', message: 'Cannot take more requests now', retryAfterMs: 7_000 },
    })
  })

  test('says which version is old when it has no such route', async () => {
    expect(await readTold(error(404, 'not_found', 'x'), newer)).toMatchObject({
      error: { code: 'version_unsupported' },
    })
  })

  test('says what is there now instead of what a request was made for', async () => {
    const current = { etag: '"b"', size: 3, mtimeMs: 1.5 }
    const body = {
      error: { code: 'file_changed', message: 'It has changed', current: { ...current, RAW: 1 } },
    }
    const told = await readTold(say(412, body), newer)
    expect(told.kind === 'body' && told.body('r')).toEqual({
      error: { code: 'file_changed', message: 'It has changed', request_id: 'r', current },
    })
  })

  test('says where an upload goes on', async () => {
    const error = { code: 'conflict', message: 'It goes on elsewhere' }
    const told = await readTold(say(409, { error, received: 7 }), newer)
    expect(told.kind === 'body' && told.body('r')).toEqual({
      error: { ...error, request_id: 'r' },
      received: 7,
    })
  })

  test('has the shape of the contract, with its code in a header or by its status', async () => {
    const code = { 'x-sandwire-code': 'is_a_folder' }
    expect(await readTold(say(400, { detail: 'Path is a directory: a' }, code), contract)).toMatchObject({
      error: { code: 'is_a_folder', message: 'Path is a directory: a' },
    })
    expect(await readTold(say(409, { detail: 'Target exists: a' }), contract)).toMatchObject({
      error: { code: 'file_exists', message: 'Target exists: a' },
    })
    expect(await readTold(say(500, { detail: 'RAW' }), contract)).toMatchObject({
      error: { code: 'sandbox_unreachable' },
    })
    for (const status of [415, 500]) {
      const told = await readTold(say(status, { detail: 'Write failed: a', RAW: 1 }, code), contract)
      expect(told.kind === 'body' && [told.code, told.body('r')]).toEqual([
        'is_a_folder',
        { detail: 'Write failed: a' },
      ])
    }
    for (const [detail, said] of [
      ['RAW', 'internal'],
      ['RAW\n', 'is_a_folder'],
    ])
      expect(await readTold(say(500, { detail }, { 'x-sandwire-code': said }), contract)).toMatchObject({
        error: { code: 'sandbox_unreachable' },
      })
    const detail = [{ type: 'missing', loc: ['query', 'path'], msg: 'Field required', input: null }]
    const told = await readTold(say(422, { detail: detail.map((one) => ({ ...one, RAW: 1 })) }), contract)
    expect(told.kind === 'body' && told.body('r')).toEqual({ detail })
  })

  test('is its status alone in answer to HEAD', async () => {
    const head = { api: 'native', isHead: true, signal } as const
    expect(await readTold(new Response(null, { status: 404 }), head)).toMatchObject({
      error: { code: 'file_not_found' },
    })
    expect(await readTold(new Response(null, { status: 500 }), head)).toMatchObject({
      error: { code: 'sandbox_unreachable' },
    })
  })
})
