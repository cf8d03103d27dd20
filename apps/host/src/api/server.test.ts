import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync, existsSync } from 'node:fs'
import path from 'node:path'
import { DEFAULT_SANDBOX_LIMITS, type StartSpec } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { createLog } from '../log.ts'
import { FakeSandboxManager } from '../sandbox-manager.fixture.ts'
import { type HostApi, serveHostApi } from './server.ts'
import { SignInCodes } from './sign-in-codes.ts'

const ID = '0123456789abcdefghjkmnpqrstvwxyz'
const SPEC: StartSpec = {
  id: ID,
  name: 'dev',
  publicKey: 'k',
  network: { policy: 'none', allow: [] },
  limits: DEFAULT_SANDBOX_LIMITS,
  env: { A: 'b' },
}

let folder = ''
let api: HostApi
let manager: FakeSandboxManager
let codes: SignInCodes
let lines: string[] = []

beforeEach(() => {
  folder = mkdtempSync('/tmp/host-api-')
  manager = new FakeSandboxManager()
  codes = new SignInCodes(() => 0)
  lines = []
  api = serveHostApi({
    manager,
    codes,
    dataFolder: '/data',
    publicUrl: 'http://localhost:1',
    socket: path.join(folder, 's'),
    log: createLog(
      (line) => lines.push(line),
      () => new Date(0),
    ),
    nowMs: () => 0,
    mintRequestId: () => 'minted',
  })
})
afterEach(async () => {
  await api.close()
  rmSync(folder, { recursive: true })
})

interface Announced {
  readonly status: number
  readonly body: unknown
}

async function send(
  method: string,
  target: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Announced> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const init = { method, headers, unix: api.socket, ...(body !== undefined && { body: text }) }
  const response = await fetch(`http://host${target}`, init)
  const answer = await response.text()
  return { status: response.status, body: answer.startsWith('{') ? JSON.parse(answer) : answer }
}

function logged(): unknown {
  return JSON.parse(lines.at(-1) ?? '{}')
}

describe('the host API', () => {
  test('is private, and removes its socket', async () => {
    expect(statSync(api.socket).mode & 0o777).toBe(0o600)
    await api.close()
    expect(existsSync(api.socket)).toBe(false)
  })

  test('reports health', async () => {
    await send('PUT', `/sandboxes/${ID}`, SPEC)
    expect(await send('GET', '/health')).toEqual({
      status: 200,
      body: { status: 'ok', version: expect.any(String), isolation: 'bubblewrap', sandboxes: 1 },
    })
  })

  test('starts, stops and destroys a sandbox', async () => {
    const running = { id: ID, state: 'running', address: 'slot:0', epoch: 'e', startedMs: 1 }
    expect((await send('GET', `/sandboxes/${ID}`)).body).toEqual({ id: ID, state: 'absent' })
    expect(await send('PUT', `/sandboxes/${ID}`, SPEC)).toEqual({ status: 200, body: running })
    expect((await send('GET', '/sandboxes')).body).toEqual({ sandboxes: [running] })
    expect((await send('GET', '/running')).body).toEqual({ ids: [ID] })
    expect(await send('POST', `/sandboxes/${ID}/disconnect`)).toEqual({ status: 204, body: '' })
    expect((await send('POST', `/sandboxes/${ID}/stop`)).body).toEqual({ id: ID, state: 'stopped' })
    expect(await send('DELETE', `/sandboxes/${ID}`)).toEqual({ status: 204, body: '' })
    expect(manager.calls).toEqual([`start ${ID}`, `disconnect ${ID}`, `stop ${ID}`, `destroy ${ID}`])
  })

  test.each([
    ['?reason=idle', 'idle'],
    ['?reason=moonlight', 'requested'],
    ['', 'requested'],
  ] as const)('passes the stop reason on: "%s" is %s', async (query, reason) => {
    expect((await send('POST', `/sandboxes/${ID}/stop${query}`)).status).toBe(200)
    expect(manager.stops).toEqual([reason])
  })

  test('logs every request under the id from control, without its body', async () => {
    await send('PUT', `/sandboxes/${ID}`, { ...SPEC, env: { TOKEN: 'canary' } }, { 'x-request-id': 'r-1' })
    expect(logged()).toMatchObject({
      event: 'request',
      request_id: 'r-1',
      sandbox: ID,
      route: 'PUT /sandboxes/:id',
      status: 200,
    })
    expect(lines.join()).not.toContain('canary')
  })

  test.each(['', 'a b', 'x'.repeat(65), '"'])('mints a request id in place of "%s"', async (given) => {
    await send('GET', '/health', undefined, { 'x-request-id': given })
    expect(logged()).toMatchObject({ request_id: 'minted' })
  })

  test.each([
    ['GET', '/', 404],
    ['GET', '/constructor', 404],
    ['POST', '/health', 404],
    ['PATCH', `/sandboxes/${ID}`, 404],
    ['POST', `/sandboxes/${ID}/exec`, 404],
    ['GET', `/sandboxes/${ID}/logs/x`, 404],
    ['GET', '/sandboxes/..%2f..', 400],
    ['GET', `/sandboxes/${ID.toUpperCase()}`, 400],
    ['GET', `/sandboxes/${ID}0`, 400],
    ['DELETE', '/sandboxes/__proto__', 400],
    ['GET', `/sandboxes/${ID}/logs?bytes=-1`, 400],
    ['GET', `/sandboxes/${ID}/logs?bytes=1e3`, 400],
  ])('answers %s %s with %d (threat T7)', async (method, target, status) => {
    const answer = await send(method, target)
    expect(answer).toEqual({
      status,
      body: { error: { code: expect.any(String), message: expect.any(String), request_id: 'minted' } },
    })
    expect(manager.calls).toEqual([])
  })

  test.each([
    ['no JSON', '{'],
    ['an unknown field', { ...SPEC, extra: 1 }],
    ['a field too few', { ...SPEC, env: undefined }],
    ['a wrong type', { ...SPEC, limits: { ...SPEC.limits, pids: '8' } }],
    ['the id of another sandbox', { ...SPEC, id: ID.replace('0', '1') }],
  ])('starts nothing from %s', async (_what, body) => {
    expect(await send('PUT', `/sandboxes/${ID}`, body)).toMatchObject({
      status: 400,
      body: { error: { code: 'bad_request' } },
    })
    expect(manager.calls).toEqual([])
  })

  test('reads no body over the limit', async () => {
    expect((await send('PUT', `/sandboxes/${ID}`, 'x'.repeat(3 * 1024 * 1024))).status).toBe(413)
    expect(manager.calls).toEqual([])
  })

  test('returns the requested part of a log, up to a limit', async () => {
    expect((await send('GET', `/sandboxes/${ID}/logs`)).body).toEqual({ bytes: 65_536 })
    expect((await send('GET', `/sandboxes/${ID}/logs?bytes=10`)).body).toEqual({ bytes: 10 })
    expect((await send('GET', `/sandboxes/${ID}/logs?bytes=999999999`)).body).toEqual({ bytes: 1_048_576 })
  })

  test('returns the code of an error, and logs its cause (threat T46)', async () => {
    manager.failure = new SandwireError('sandbox_failed', 'Cannot start the sandbox', {
      cause: new Error('/secret/path'),
    })
    const answer = await send('PUT', `/sandboxes/${ID}`, SPEC)
    expect(answer).toEqual({
      status: 502,
      body: { error: { code: 'sandbox_failed', message: 'Cannot start the sandbox', request_id: 'minted' } },
    })
    expect(logged()).toMatchObject({ level: 'warn', code: 'sandbox_failed', cause: '/secret/path' })
  })

  test('hides internal errors (threat T46)', async () => {
    manager.failure = new Error('ENOENT: /secret/path')
    expect((await send('PUT', `/sandboxes/${ID}`, SPEC)).body).toEqual({
      error: { code: 'internal', message: 'Internal error', request_id: 'minted' },
    })
  })

  test('redeems a sign-in code once', async () => {
    const { body } = await send('POST', '/signin')
    const link = String(typeof body === 'object' && body !== null && 'link' in body ? body.link : '')
    expect(link).toStartWith('http://localhost:1/signin#')
    const code = new URL(link).hash.slice(1)
    expect((await send('POST', '/signin/redeem', { code })).status).toBe(204)
    expect(await send('POST', '/signin/redeem', { code })).toMatchObject({
      status: 401,
      body: { error: { code: 'unauthorized' } },
    })
    expect((await send('POST', '/signin/redeem', { code: 1 })).status).toBe(400)
    expect(lines.join()).not.toContain(code)
  })
})
