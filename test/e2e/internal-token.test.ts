import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import {
  type ClaimChanges,
  mintSessionId,
  SANDBOX_ID,
  type SignedSandboxd,
  startSignedSandboxd,
} from './support/signed-sandboxd.ts'
import { mintHex, WireClient } from './support/wire-client.ts'

let signed: SignedSandboxd
beforeAll(async () => {
  signed = await startSignedSandboxd()
})
afterAll(() => signed[Symbol.asyncDispose]())

const CONTROL: ClaimChanges = { authority: 'control', exec: false, identity: 'control' }

async function errorOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as {
    error: { code: string; message: string; request_id: string }
  }
  return `${response.status} ${error.code}`
}

function create(body: object, changes: ClaimChanges = {}): Promise<Response> {
  return signed.fetch('/sessions', { method: 'POST', body: JSON.stringify(body) }, changes)
}

async function start(changes: ClaimChanges = {}): Promise<string> {
  const response = await create({ createId: mintHex(), cmd: 'cat', keep: 60 }, changes)
  return ((await response.json()) as { id: string }).id
}

describe('(threat T11) sandboxd behind control', () => {
  test('serves only /healthz without a token', async () => {
    expect((await fetch(`${signed.sandboxd.url}/healthz`)).status).toBe(200)
    for (const path of [
      '/sessions',
      '/activity',
      '/metrics',
      '/__meta/version',
      '/attach?cmd=cat',
      '/nowhere',
    ])
      expect(await errorOf(await fetch(`${signed.sandboxd.url}${path}`))).toBe('401 unauthorized')
  })

  test('refuses a token for any other request than the signed one', async () => {
    const good = await signed.sign('GET', '/activity', CONTROL)
    const send = (path: string, token: string, method = 'GET') =>
      signed.sandboxd.fetch(path, { method, headers: { authorization: `Bearer ${token}` } })
    expect((await send('/activity', good)).status).toBe(200)
    const late = { issuedMs: Date.now() - 60_000, expiresMs: Date.now() - 30_000 }
    const early = { issuedMs: Date.now() + 30_000, expiresMs: Date.now() + 60_000 }
    const rows: [string, string, string?][] = [
      ['/activity?x=1', good],
      ['/sessions', good],
      ['/activity', good, 'POST'],
      // No Ed25519 signature ends like this: its last byte is at most 0x10.
      ['/activity', `${good.slice(0, -2)}_w`],
      [
        '/activity',
        await signed.sign('GET', '/activity', { ...CONTROL, sandbox: SANDBOX_ID.replace('0', '1') }),
      ],
      ['/activity', await signed.sign('GET', '/activity', { ...CONTROL, ...late })],
      ['/activity', await signed.sign('GET', '/activity', { ...CONTROL, ...early })],
      [
        '/activity',
        await signed.sign('GET', '/activity', { ...CONTROL, session: `${'1'.repeat(32)}.${'0'.repeat(26)}` }),
      ],
    ]
    for (const [path, token, method] of rows)
      expect(await errorOf(await send(path, token, method))).toBe('401 unauthorized')
  })

  test('accepts a token for a write or an upgrade once', async () => {
    const body = JSON.stringify({ createId: mintHex(), cmd: 'true' })
    const authorization = `Bearer ${await signed.sign('POST', '/sessions')}`
    const post = () =>
      signed.sandboxd.fetch('/sessions', { method: 'POST', body, headers: { authorization } })
    expect((await post()).status).toBe(201)
    expect(await errorOf(await post())).toBe('401 unauthorized')

    const query = 'cmd=cat&keep=1'
    const headers = { authorization: `Bearer ${await signed.sign('GET', `/attach?${query}`)}` }
    const sandboxd = { ...signed.sandboxd, headers }
    await using first = new WireClient(sandboxd, query)
    await first.hello({ identity: mintHex() })
    await first.next('welcome')
    await using second = new WireClient(sandboxd, query)
    // A refused credential is an HTTP response, which a WebSocket client sees as a failed handshake.
    expect((await second.closed).code).toBe(1006)
  })

  test('refuses tokens that its own processes sign with another key', async () => {
    const { privateKey } = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
    const [kind, body] = (await signed.sign('GET', '/sessions', CONTROL)).split('.')
    const content = new TextEncoder().encode(`${kind}.${body}`)
    const signature = Buffer.from(await crypto.subtle.sign('Ed25519', privateKey, content)).toString(
      'base64url',
    )
    const forged = [
      '',
      `${kind}.${body}.`,
      `${kind}.${body}.${signature}`,
      `${kind}.${body}.${'A'.repeat(86)}`,
    ]
    const calls = forged.map(
      (token) =>
        `curl -s -o /dev/null -w '%{http_code} ' -H 'authorization: Bearer ${token}' ${signed.sandboxd.url}/sessions`,
    )
    const response = await create({ createId: mintHex(), cmd: 'sh', args: ['-c', calls.join('; ')] })
    const { id } = (await response.json()) as { id: string }
    const said = await eventually(
      async () => {
        const output = await signed.fetch(`/sessions/${id}/output`)
        return output.headers.get('sandwire-state') === 'exited' ? output.text() : undefined
      },
      { what: 'the answers' },
    )
    expect(said).toBe('401 401 401 401 ')
  })

  test('refuses a token in a query or with another scheme', async () => {
    const token = await signed.sign('GET', '/activity', CONTROL)
    for (const authorization of [`Basic ${token}`, token, `Bearer ${token} x`])
      expect(await errorOf(await signed.sandboxd.fetch('/activity', { headers: { authorization } }))).toBe(
        '401 unauthorized',
      )
  })

  test('serves only the configured hosts', async () => {
    const headers = {
      host: 'evil.example',
      authorization: `Bearer ${await signed.sign('GET', '/activity', CONTROL)}`,
    }
    expect(await errorOf(await signed.sandboxd.fetch('/activity', { headers }))).toBe('421 host_refused')
  })
})

describe('an authority', () => {
  test('of control manages sessions but cannot start, read or attach', async () => {
    const id = await start()
    for (const path of ['/sessions', '/activity', '/metrics', '/__meta/version', `/sessions/${id}`])
      expect((await signed.fetch(path, {}, CONTROL)).status).toBe(200)
    expect(await errorOf(await signed.fetch(`/sessions/${id}/output`, {}, CONTROL))).toBe('403 forbidden')
    expect(await errorOf(await create({ createId: mintHex(), cmd: 'true' }, CONTROL))).toBe('403 forbidden')
    await using client = await signed.attach(`session=${id}`, CONTROL)
    expect((await client.closed).code).toBe(4403)
    const signal = { method: 'POST', body: '{"signal":"SIGCONT"}' }
    expect((await signed.fetch(`/sessions/${id}/signal`, signal, CONTROL)).status).toBe(200)
    expect((await signed.fetch(`/sessions/${id}`, { method: 'DELETE' }, CONTROL)).status).toBe(202)
  })

  test('of a viewer can change nothing', async () => {
    const id = await start()
    const viewer: ClaimChanges = { authority: 'viewer', exec: false }
    expect((await signed.fetch(`/sessions/${id}`, {}, viewer)).status).toBe(200)
    expect((await signed.fetch(`/sessions/${id}/output`, {}, viewer)).status).toBe(200)
    const refused: [string, RequestInit][] = [
      ['/sessions', {}],
      ['/activity', {}],
      ['/metrics', {}],
      [`/sessions/${id}`, { method: 'DELETE' }],
      [`/sessions/${id}/signal`, { method: 'POST', body: '{"signal":"SIGKILL"}' }],
      ['/attachments/close', { method: 'POST', body: `{"session":"${id}"}` }],
    ]
    for (const [path, init] of refused)
      expect(await errorOf(await signed.fetch(path, init, viewer))).toBe('403 forbidden')
    await using client = await signed.attach(`session=${id}`, viewer)
    await client.hello({ identity: mintHex() })
    expect(await client.next('welcome')).toMatchObject({ role: 'viewer', authority: 'viewer' })
    client.send(new Uint8Array([120]))
    expect((await client.closed).code).toBe(4430)
    await signed.fetch(`/sessions/${id}`, { method: 'DELETE' })
  })

  test('[A1] bounds the role in the URL: a lower role is granted, a higher one is forbidden', async () => {
    const id = await start()
    await using below = await signed.attach(`session=${id}&role=viewer`)
    await below.hello({ identity: mintHex() })
    expect(await below.next('welcome')).toMatchObject({ role: 'viewer', authority: 'viewer' })
    for (const authority of ['viewer', 'collaborator'] as const) {
      await using above = await signed.attach(`session=${id}&role=driver&take=1`, { authority })
      expect(await above.next('error')).toMatchObject({ code: 'forbidden', fatal: true })
    }
    await signed.fetch(`/sessions/${id}`, { method: 'DELETE' })
  })

  test('[A3] without exec cannot start a command or shell or set the environment', async () => {
    for (const query of ['cmd=id', 'mode=pty', `createId=${mintHex()}`]) {
      await using client = await signed.attach(query, { exec: false })
      expect(await client.next('error')).toMatchObject({ code: 'forbidden', fatal: true })
    }
    expect(await errorOf(await create({ createId: mintHex() }, { exec: false }))).toBe('403 forbidden')
    const id = await start()
    await using client = await signed.attach(`session=${id}`, { exec: false })
    await client.hello({ identity: mintHex(), env: { LD_PRELOAD: '/tmp/x.so' } })
    expect(await client.next('error')).toMatchObject({ code: 'forbidden' })
    await signed.fetch(`/sessions/${id}`, { method: 'DELETE' })
  })
})

describe('a session that waits for the hello of its creator', () => {
  const stateOf = async (id: string): Promise<unknown> => {
    const view = (await (await signed.fetch(`/sessions/${id}`)).json()) as Record<string, unknown>
    return view['state']
  }

  test('[C5] is not started by a viewer that joins (threat T5)', async () => {
    const id = mintSessionId()
    await using starter = await signed.attach('cmd=sh&arg=-c&arg=stty+size&mode=pty', { session: id })
    await starter.opened()
    await using viewer = await signed.attach(`session=${id}`, { authority: 'viewer', exec: false })
    await viewer.hello({ identity: mintHex(), cols: 11, rows: 7, env: { TERM: 'of-the-viewer' } })
    await viewer.next('welcome')
    expect(await stateOf(id)).toBe('pending')
    await starter.hello({ identity: mintHex(), cols: 100, rows: 30 })
    await viewer.next('exit')
    expect(Buffer.concat(viewer.output).toString()).toContain('30 100')
  })

  test('[A3] has the environment of its template, not of the first client to join (threat T9)', async () => {
    const id = mintSessionId()
    const template: ClaimChanges = { session: id, exec: false, starts: true }
    await using starter = await signed.attach('cmd=cat', template)
    await starter.opened()
    await using joined = await signed.attach(`session=${id}`, { exec: true })
    await joined.hello({ identity: mintHex(), env: { BASH_ENV: '$(id)' } })
    expect(await joined.next('error')).toMatchObject({ code: 'forbidden' })
    expect(await stateOf(id)).toBe('pending')
  })
})

describe('an identity', () => {
  test('[A7] appears under the name in its token, not the name in hello', async () => {
    const id = await start()
    await using named = await signed.attach(`session=${id}`, { name: 'Ada' })
    await named.hello({ identity: mintHex(), name: 'root' })
    const presence = await named.next('presence')
    expect(presence['attachments']).toMatchObject([{ name: 'Ada' }])
    await signed.fetch(`/sessions/${id}`, { method: 'DELETE' })
  })

  test('[A2] resumes only its own attachments', async () => {
    const id = await start()
    const identity = mintHex()
    await using own = await signed.attach(`session=${id}`)
    await own.hello({ identity })
    await own.next('welcome')
    await using other = await signed.attach(`session=${id}`, { identity: 'local:2' })
    await other.hello({ identity, attempt: 2, resuming: true })
    expect(await other.next('error')).toMatchObject({ code: 'resume_lost' })
    await signed.fetch(`/sessions/${id}`, { method: 'DELETE' })
  })

  test('[C4] has its own namespace of create ids', async () => {
    const createId = mintHex()
    const body = { createId, cmd: 'true' }
    const ids = await Promise.all(
      ['local:1', 'local:2', 'local:1'].map(async (identity) => {
        const view = (await (await create(body, { identity })).json()) as { id: string }
        return view.id
      }),
    )
    expect(ids[0]).toBe(ids[2] ?? '')
    expect(ids[0]).not.toBe(ids[1] ?? '')
  })
})

describe('[C12] a session id in the token', () => {
  test('becomes the id of the new session; a repeated create id returns the first', async () => {
    const createId = mintHex()
    const session = mintSessionId()
    const first = await create({ createId, cmd: 'true' }, { session })
    expect(await first.json()).toMatchObject({ id: session })
    const again = await create({ createId, cmd: 'true' }, { session: mintSessionId() })
    expect(again.status).toBe(200)
    expect(await again.json()).toMatchObject({ id: session })
    const same = await create({ createId, cmd: 'true' }, { session })
    expect(await same.json()).toMatchObject({ id: session })
  })

  test('is never used for a second session', async () => {
    const session = mintSessionId()
    expect((await create({ createId: mintHex(), cmd: 'cat' }, { session })).status).toBe(201)
    const createId = mintHex()
    expect(await errorOf(await create({ createId, cmd: 'cat' }, { session }))).toBe('409 conflict')
    expect((await create({ createId, cmd: 'cat' }, { session: mintSessionId() })).status).toBe(201)
  })

  test('arrives in the welcome of an upgrade', async () => {
    const session = mintSessionId()
    await using client = await signed.attach(`cmd=cat&createId=${mintHex()}&keep=1`, { session })
    await client.hello({ identity: mintHex() })
    expect(await client.next('welcome')).toMatchObject({ session })
  })
})

test('every log line about a request has its request id', async () => {
  const requestId = mintHex()
  await using client = await signed.attach('cmd=true&keep=1', { requestId })
  await client.hello({ identity: mintHex() })
  await client.next('exit')
  client.leave()
  const refusedId = mintHex()
  const refused = await signed.fetch('/sessions/none', {}, { requestId: refusedId })
  expect(refused.headers.get('x-request-id')).toBe(refusedId)
  const eventsOf = (id: string) =>
    signed.sandboxd
      .logs()
      .flatMap((line) =>
        typeof line !== 'string' && line['request_id'] === id ? [String(line['event'])] : [],
      )
  const isLogged = () => eventsOf(requestId).length >= 4 && eventsOf(refusedId).length >= 1
  await eventually(isLogged, { what: 'the last lines' })
  expect(eventsOf(requestId).toSorted()).toEqual(['connected', 'disconnected', 'ended', 'started'])
  expect(eventsOf(refusedId)).toEqual(['refused'])
})

describe('output per second', () => {
  const PER_SECOND = 4_000
  /** Bytes that may be sent at once: a quarter of a second's. */
  const BURST = PER_SECOND / 4

  test('[W9] is limited per account, across sessions and attachments (threat T50)', async () => {
    await using slow = await startSignedSandboxd({ args: ['--output-bytes-per-second', String(PER_SECOND)] })
    const since = performance.now()
    const readers = await Promise.all(
      ['yes', 'yes'].map(async (cmd) => {
        const reader = await slow.attach(`cmd=${cmd}`)
        await reader.hello({ identity: mintHex() })
        return reader
      }),
    )
    const total = (): number => readers.reduce((sum, { outputBytes }) => sum + outputBytes, 0)
    await eventually(() => total() > 6 * BURST, { what: 'some output' })
    // The most that can have been sent by now.
    expect(total()).toBeLessThanOrEqual(BURST + (PER_SECOND * (performance.now() - since)) / 1000)
    await using other = await slow.attach('cmd=yes', { identity: 'local:2' })
    await other.hello({ identity: mintHex() })
    await eventually(() => other.outputBytes > 0, { what: 'the output of another account' })
    for (const reader of readers) await reader[Symbol.asyncDispose]()
  })
})
