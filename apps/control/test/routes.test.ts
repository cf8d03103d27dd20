import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { decodeConfig } from '../src/config.ts'
import { PROXY_ROUTES } from '../src/workspace-proxy/routes.ts'
import { POLICIES, policyOf } from '../src/routes/policies.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'

let sandboxes: FakeSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  control = await startControl({ runner: sandboxes, config: { maxSandboxes: 4 } })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

const json = async (response: Response): Promise<Record<string, unknown>> =>
  Object(await response.json()) as Record<string, unknown>
const post = (path: string, body?: unknown): Promise<Response> =>
  control.fetch(path, { method: 'POST', ...(body === undefined ? {} : { json: body }) })

describe('the routes', () => {
  /** Loaded without its types, which are those of the Worker. */
  async function routerRoutes(): Promise<string[]> {
    const source = '../src/app.ts'
    const { createApp } = await import(source)
    const none = (): undefined => undefined
    const app = createApp({
      runtime: {
        config: decodeConfig(
          JSON.stringify({
            mode: 'local',
            publicOrigins: [],
            hosts: ['localhost'],
            localTokenSha256: '0'.repeat(64),
            sleepAfterMs: 1_000,
            alarmMs: 1_000,
            maxSandboxes: 1,
            provider: 'host',
            workspaceMode: 'sandboxes',
          }),
        ),
        log: { info: none, warn: none, error: none },
        metrics: { count: none, set: none },
        nowMs: () => 0,
      },
      lookup: {},
      mint: {},
      accounts: {},
      secrets: {},
      mintRequestId: () => 'r',
      redeem: none,
    })
    const routes: { method: string; path: string }[] = app.routes
    return [
      ...new Set(
        routes
          .filter(({ method }) => method !== 'ALL')
          .map(({ method, path }) => `${method} ${path.replace(/\{.*\}$/, '')}`),
      ),
    ]
  }

  async function documented(): Promise<string[]> {
    const { paths } = await json(await control.fetch('/api/openapi.json'))
    return Object.entries(Object(paths) as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
    )
  }

  test('have exactly one policy each', async () => {
    expect((await routerRoutes()).sort()).toEqual(Object.keys(POLICIES).sort())
    expect(() => policyOf('GET', '/unheard-of')).toThrow('has no policy')
  })

  test('are all in the OpenAPI document, except for pages', async () => {
    const pages = [
      'GET /',
      'GET /assets/:file',
      'GET /signin',
      'GET /signin.js',
      'GET /signin/start',
      'GET /signin/callback',
      'GET /signin/callback/:issuer',
      'GET /join',
      'GET /join.js',
      'GET /page.css',
      'GET /api/openapi.json',
    ]
    expect((await documented()).sort()).toEqual(
      Object.keys(POLICIES)
        .filter((route) => !pages.includes(route))
        .sort(),
    )
  })

  test('document the parameters of attach and join', async () => {
    const { paths } = await json(await control.fetch('/api/openapi.json'))
    const namesOf = (path: string): string[] =>
      Object(paths)
        [path].get.parameters.filter((each: { in: string }) => each.in === 'query')
        .map((each: { name: string }) => each.name)
    expect(namesOf('/attach')).toContain('pin')
    expect(namesOf('/terminal/{session}')).toEqual(['role', 'take', 'cols', 'rows'])
  })

  test('document every JSON body of the workspace', async () => {
    const { paths } = await json(await control.fetch('/api/openapi.json'))
    for (const route of PROXY_ROUTES.filter(({ body }) => body.kind === 'json' || body.kind === 'content')) {
      const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
      const { requestBody } = Object(paths)[path][route.method.toLowerCase()]
      const { schema } = requestBody.content['application/json']
      expect([path, schema.required.length > 0]).toEqual([path, true])
      expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(schema.required))
    }
  })

  test('need a credential, except for the public ones', async () => {
    for (const [route, policy] of Object.entries(POLICIES)) {
      const [method = '', path = ''] = route.split(' ')
      const concrete = path
        .replace(':sandbox', 'dev')
        .replace(':session', `${'0'.repeat(32)}.${'0'.repeat(26)}`)
      const { status } = await control.fetch(concrete, { method, headers: { authorization: '' } })
      // Guests redeem share links without a credential.
      const isOpen = policy === 'public' || policy.credential === 'invited'
      expect([route, status === 401]).toEqual([route, !isOpen])
    }
  })

  test('report an unknown path or method', async () => {
    expect((await control.fetch('/unheard-of')).status).toBe(404)
    for (const [path, allow] of [
      ['/api/sandboxes', 'GET, HEAD, POST'],
      ['/api/sandboxes/dev', 'GET, HEAD, DELETE'],
      ['/api/sandboxes/dev/stop', 'POST'],
      ['/attach', 'GET, HEAD'],
    ] as const) {
      const { status, headers } = await control.fetch(path, { method: 'PATCH' })
      expect([path, status, headers.get('allow')]).toEqual([path, 405, allow])
    }
  })

  test.each(['bearer', 'BEARER', 'Bearer', 'Bearer '])('accept the scheme "%s"', async (scheme) => {
    const headers = { authorization: `${scheme} ${TOKEN}` }
    expect((await control.fetch('/api/sandboxes', { headers })).status).toBe(200)
  })

  test.each([
    ['GET', '/api/sandboxes?limit=5', 'limit'],
    ['GET', '/api/account/sessions?a=1&b=2', 'a'],
    ['POST', '/api/sandboxes/dev/stop?discord=1', 'discord'],
    ['DELETE', '/api/sandboxes/dev?force=1', 'force'],
    ['GET', '/api/openapi.json?v=2', 'v'],
    ['GET', '/logs/dev?lines=5', 'lines'],
    ['GET', '/api/sandboxes?%1b%5b31m=', '[31m'],
  ])('refuse an unknown parameter: %s %s', async (method, path, name) => {
    const response = await control.fetch(path, { method })
    expect(response.status).toBe(400)
    expect(await json(response)).toMatchObject({
      error: { code: 'bad_request', message: `Cannot use "${name}": unknown` },
    })
  })
})

describe('a sandbox over the API', () => {
  test('is created, shown, listed, stopped, started and destroyed, by name and by id', async () => {
    const made = await post('/api/sandboxes', { name: 'dev', env: { A: 'b' }, sleepAfterSeconds: 60 })
    expect(made.status).toBe(201)
    const view = await json(made)
    expect(view).toMatchObject({
      isolation: 'none',
      name: 'dev',
      state: 'running',
      ephemeral: false,
      sleepAfterSeconds: 60,
      env: ['A'],
      // The fake host has no isolation.
      network: { policy: 'open', allow: [] },
    })
    const id = String(view['id'])
    expect(control.host.specs.get(id)).toMatchObject({ id, name: 'dev', env: { A: 'b' } })
    expect(await json(await control.fetch('/api/sandboxes'))).toMatchObject({
      sandboxes: [{ id, state: 'running', isolation: 'none' }],
    })
    expect(await json(await control.fetch(`/api/sandboxes/${id}`))).toMatchObject({ id })
    expect(await json(await post('/api/sandboxes/dev/stop'))).toMatchObject({ state: 'stopped' })
    expect(await json(await post('/api/sandboxes/dev/stop'))).toMatchObject({ state: 'stopped' })
    const env = await control.fetch('/api/sandboxes/dev/env', { method: 'PUT', json: { env: { C: 'd' } } })
    expect(await json(env)).toMatchObject({ env: ['C'] })
    expect(await json(await post(`/api/sandboxes/${id}/start`))).toMatchObject({ state: 'running' })
    expect(control.host.specs.get(id)?.env).toEqual({ C: 'd' })
    expect((await control.fetch('/api/sandboxes/dev', { method: 'DELETE' })).status).toBe(204)
    expect(control.host.count(`DELETE /sandboxes/${id}`)).toBe(1)
    expect((await control.fetch(`/api/sandboxes/${id}`)).status).toBe(404)
    expect(await json(await control.fetch('/api/sandboxes'))).toEqual({ sandboxes: [] })
  })

  test('has a unique name, also with concurrent requests', async () => {
    const all = await Promise.all(
      Array.from({ length: 10 }, () => post('/api/sandboxes', { name: 'one', start: false })),
    )
    expect(all.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(all.filter(({ status }) => status === 409)).toHaveLength(9)
    expect((await control.fetch('/api/sandboxes/one', { method: 'DELETE' })).status).toBe(204)
  })

  test('gets a generated name by default, and their number is limited', async () => {
    const names: unknown[] = []
    for (let count = 0; count < 4; count++) {
      const response = await post('/api/sandboxes', { start: false })
      names.push((await json(response))['name'])
    }
    expect(new Set(names).size).toBe(4)
    expect((await post('/api/sandboxes', { start: false })).status).toBe(429)
    for (const name of names) await control.fetch(`/api/sandboxes/${String(name)}`, { method: 'DELETE' })
  })

  test.each([
    [
      { limits: { memoryBytes: 1 } },
      'limits.memoryBytes',
      'expected a whole number from 16777216 to 1099511627776',
    ],
    [{ limits: { memoryBytes: 2 ** 60 } }, 'limits.memoryBytes', 'from 16777216 to 1099511627776'],
    [{ limits: { pids: 7 } }, 'limits.pids', 'expected a whole number from 8 to 100000'],
    [{ limits: { pids: 'many' } }, 'limits.pids', 'expected a whole number from 8 to 100000'],
    [{ limits: { milliCpus: 1.5 } }, 'limits.milliCpus', 'expected a whole number from 10 to 1000000'],
    [{ limits: { diskBytes: 0 } }, 'limits.diskBytes', 'from 1048576 to 1125899906842624'],
    [{ sleepAfterSeconds: 0 }, 'sleepAfterSeconds', 'expected a whole number from 1 to 2592000'],
    [{ network: { policy: 'RAW' } }, 'network.policy', 'expected none or allowlist or open'],
    [{ name: 'RAW' }, 'name', 'expected lower-case letters'],
    [{ start: 'RAW' }, 'start', 'not accepted'],
  ])('is refused for %j with the expected format', async (body, name, expected) => {
    const response = await post('/api/sandboxes', body)
    expect(response.status).toBe(400)
    const { error } = await json(response)
    const message = String(fieldOf(error, 'message'))
    expect(message).toStartWith(`Cannot use "${name}": `)
    expect(message).toContain(expected)
    expect(message).not.toContain('RAW')
  })

  test('is refused for a body of another media type', async () => {
    const send = async (type: string | undefined, text: string): Promise<unknown> => {
      const headers = type === undefined ? {} : { 'content-type': type }
      const body = new TextEncoder().encode(text)
      return json(await control.fetch('/api/sandboxes', { method: 'POST', headers, body }))
    }
    const wrong = { error: { message: 'Cannot read the body: content-type is not application/json' } }
    expect(await send('text/plain', '{"name":"x"}')).toMatchObject(wrong)
    expect(await send('application/x-www-form-urlencoded', 'name=x')).toMatchObject(wrong)
    expect(await send(undefined, '{"name":"x"}')).toMatchObject(wrong)
    const twice = { error: { message: 'Cannot use "name": given twice' } }
    expect(await send('application/json', '{"name":"x","name":"y"}')).toMatchObject(twice)
    const broken = { error: { message: 'Cannot read the body: not JSON' } }
    expect(await send('application/json', '{"name":')).toMatchObject(broken)
    expect(await send('application/json; charset=utf-8', '')).toMatchObject(broken)
  })

  test('is listed, shown and started as it is, not as it was', async () => {
    const id = String((await json(await post('/api/sandboxes', { name: 'truth' })))['id'])
    const stateIn = async (path: string): Promise<string> =>
      /"name":"truth","state":"([a-z]+)"/.exec(await (await control.fetch(path)).text())?.[1] ?? ''
    expect(await stateIn('/api/sandboxes')).toBe('running')
    // Its supervisor was killed.
    const before = control.host.sandboxes.get(id)
    control.host.sandboxes.set(id, { id, state: 'stopped', reason: 'supervisor_lost' })
    await eventually(async () => (await stateIn('/api/sandboxes')) === 'stopped', { what: 'the list' })
    expect(await stateIn(`/api/sandboxes/${id}`)).toBe('stopped')
    // A start of an earlier host ended after all.
    if (before !== undefined) control.host.sandboxes.set(id, before)
    await eventually(async () => (await stateIn('/api/sandboxes')) === 'running', { what: 'the list' })
    control.host.sandboxes.set(id, { id, state: 'stopped', reason: 'supervisor_lost' })
    const starts = control.host.count(`PUT /sandboxes/${id}`)
    expect(await json(await post('/api/sandboxes/truth/start'))).toMatchObject({ state: 'running' })
    expect(control.host.count(`PUT /sandboxes/${id}`)).toBe(starts + 1)
    expect((await control.fetch('/api/sandboxes/truth', { method: 'DELETE' })).status).toBe(204)
  })

  test('reports why a start failed, in words of its own, and can be started again', async () => {
    let error: object = {
      code: 'sandbox_failed',
      message: 'RAW',
      request_id: 'r',
      start_failure: 'ids_in_use',
    }
    control.host.intercept = (request) =>
      request.method === 'PUT' ? Response.json({ error }, { status: 502 }) : undefined
    const response = await post('/api/sandboxes', { name: 'weak' })
    expect([response.status, await json(response)]).toMatchObject([
      502,
      {
        error: {
          message: expect.stringMatching(/^Cannot start the sandbox: it runs from another data folder/),
        },
      },
    ])
    expect(await json(await control.fetch('/api/sandboxes/weak'))).toMatchObject({
      state: 'failed',
      reason: 'ids_in_use',
    })
    error = { code: 'sandbox_failed', message: 'RAW', request_id: 'r' }
    expect((await post('/api/sandboxes/weak/start')).status).toBe(502)
    expect(await json(await control.fetch('/api/sandboxes/weak'))).toMatchObject({
      state: 'failed',
      reason: 'sandbox_failed',
    })
    control.host.intercept = undefined
    expect(await json(await post('/api/sandboxes/weak/start'))).toMatchObject({
      state: 'running',
      reason: null,
    })
    await control.fetch('/api/sandboxes/weak', { method: 'DELETE' })
  })

  test('shows its log', async () => {
    await post('/api/sandboxes', { name: 'talker', start: false })
    const response = await control.fetch('/logs/talker?bytes=100')
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    expect(await response.text()).toBe('{"event":"line"}\n')
    await control.fetch('/api/sandboxes/talker', { method: 'DELETE' })
  })
})

describe('a request', () => {
  test('has the same id in the response, at the host and in the log', async () => {
    await control.fetch('/api/sandboxes', { method: 'POST', json: { name: 'logged' } })
    const response = await control.fetch('/logs/logged')
    const id = response.headers.get('x-request-id')
    expect(control.host.requestIds).toContain(id)
    const line = await eventually(() => control.log.find((text) => text.includes(String(id))), {
      what: 'the log',
    })
    expect(JSON.parse(line)).toEqual({
      time: expect.any(String),
      level: 'info',
      source: 'control',
      event: 'request',
      request_id: id,
      route: '/logs/:sandbox',
      method: 'GET',
      status: 200,
      duration_ms: expect.any(Number),
    })
  })
})

describe('the folder of a local workspace', () => {
  test('is the only sandbox and the default', async () => {
    await using local = await startControl({ runner: sandboxes, config: { workspaceMode: 'local' } })
    expect((await upgrade(local, '/attach?cmd=cat')).kind).toBe('open')
    expect(await json(await local.fetch('/api/sandboxes'))).toMatchObject({ sandboxes: [{ name: 'local' }] })
    const second = await local.fetch('/api/sandboxes', { method: 'POST', json: { name: 'second' } })
    expect(second.status).toBe(404)
    expect(refusalOf(await upgrade(local, '/attach?sandbox=second&cmd=cat'))).toBe('404 sandbox_not_found')
  })
})
