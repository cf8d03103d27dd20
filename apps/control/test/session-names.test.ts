import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { fromBase64Url, toBase64Url } from '@sandwire/bytes'
import { type RawHandshake, eventually } from '@sandwire/testing'
import { openSessionTokens } from '../src/auth/session-token.ts'
import { type RunningControl, startControl } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { JWT_SECRET, serviceToken } from './support/service-token.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const KEY = new Uint8Array(32).fill(9)
const SESSION_TOKEN_SECRET = `k1:${Buffer.from(KEY).toString('base64')},k0:${Buffer.alloc(32, 8).toString('base64')}`
const V1 = { subprotocols: ['sandwire.v1'] }
const ADA = serviceToken('ada', ['connect', 'exec', 'admin'])
const BOB = serviceToken('bob', ['connect', 'exec', 'admin'])
const HEADER = 'sandwire-session-token'

let sandboxes: RealSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new RealSandboxes()
  const bindings = { JWT_SECRET, SESSION_TOKEN_SECRET }
  control = await startControl({ runner: sandboxes, bindings, config: { tokenInUrl: true } })
  expect((await post('/api/sandboxes', { name: 'dev' }, ADA)).status).toBe(201)
  expect((await post('/api/sandboxes', { name: 'other' }, ADA)).status).toBe(201)
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

const bearer = (token: string) => ({ ...V1, headers: [['Authorization', `Bearer ${token}`]] as const })
const post = (path: string, json: unknown, token: string): Promise<Response> =>
  control.fetch(path, { method: 'POST', json, headers: { authorization: `Bearer ${token}` } })
const get = (path: string, token: string): Promise<Response> =>
  control.fetch(path, { headers: { authorization: `Bearer ${token}` } })

interface Named {
  readonly id: string
  readonly token: string
}

async function startCat(): Promise<Named> {
  return (await (await post('/api/sandboxes/dev/sessions', { cmd: 'cat' }, ADA)).json()) as Named
}

/** The outcome of an upgrade: `open` with its headers, or the error frame as sent. */
async function outcomeOf(handshake: RawHandshake): Promise<{ text: string; headers?: Headers }> {
  if (handshake.kind !== 'open') return { text: refusalOf(handshake) }
  await using socket = handshake.socket
  const { headers } = socket.response
  if (headers.has(HEADER)) return { text: 'open', headers }
  return { text: new TextDecoder().decode((await socket.nextFrame()).payload) }
}
const join = async (name: string, token: string, also = '') =>
  outcomeOf(await upgrade(control, `/attach?session=${encodeURIComponent(name)}${also}`, bearer(token)))

describe('a session token', () => {
  test('is returned with a session and resolves to its id', async () => {
    const { id, token } = await startCat()
    expect(token).toStartWith('swt1.k1.')
    const shown = (await (await get(`/api/account/sessions/${id}`, ADA)).json()) as Named
    expect(shown.token).not.toBe(token)
    for (const name of [id, token, shown.token]) {
      expect((await join(name, ADA)).text).toBe('open')
      expect((await join(name, ADA, '&sandbox=dev')).text).toBe('open')
      expect((await outcomeOf(await upgrade(control, `/terminal/${name}`, bearer(ADA)))).text).toBe('open')
    }
  })

  test('is renewed by every connect, also by one that starts the session', async () => {
    const { token } = await startCat()
    const joined = await join(token, ADA)
    const fresh = joined.headers?.get(HEADER) ?? ''
    expect(fresh).not.toBe(token)
    expect((await join(fresh, ADA)).text).toBe('open')
    const path = `/attach?sandbox=dev&cmd=cat&createId=${'ce'.repeat(16)}`
    const first = await upgrade(control, path, bearer(ADA))
    const second = await upgrade(control, path, bearer(ADA))
    for (const handshake of [first, second]) {
      if (handshake.kind !== 'open') throw new Error(refusalOf(handshake))
      const { headers } = handshake.socket.response
      expect((await join(headers.get(HEADER) ?? '', ADA)).text).toBe('open')
      expect([headers.get('sandwire-session'), headers.get('sandwire-mode')]).toEqual([null, null])
    }
    for (const handshake of [first, second]) if (handshake.kind === 'open') handshake.socket.reset()
  })

  test('can be used instead of the id to get a ticket, by its own account only', async () => {
    const { id, token } = await startCat()
    const given = await post('/api/tickets', { session: token }, ADA)
    expect(given.status).toBe(201)
    const { ticket } = (await given.json()) as { ticket: string }
    const subprotocols = ['sandwire.v1', `sandwire.ticket.${ticket}`]
    const opened = await upgrade(control, `/terminal/${id}`, { subprotocols, headers: [] })
    expect((await outcomeOf(opened)).text).toBe('open')
    for (const [name, whose] of [
      [token, BOB],
      [`${token}x`, ADA],
    ] as const)
      expect((await post('/api/tickets', { session: name }, whose)).status).toBe(404)
  })

  test('replaces no credential', async () => {
    const { token } = await startCat()
    const path = `/attach?session=${token}`
    expect(refusalOf(await upgrade(control, path, { ...V1, headers: [] }))).toBe('401 unauthorized')
    expect(refusalOf(await upgrade(control, path, bearer(token)))).toBe('401 unauthorized')
  })

  test('of another account, malformed or of another sandbox gets the response of a missing session', async () => {
    const { id, token } = await startCat()
    const missing = (await join(id.replace(/.{4}$/, '0000'), ADA)).text
    expect(missing).toContain('session_not_found')
    const [kind, kid, body = ''] = token.split('.')
    const bytes = fromBase64Url(body) ?? new Uint8Array()
    const flipped = [0, 5, 11, 12, 40, bytes.length - 17, bytes.length - 16, bytes.length - 1].map((at) => {
      const changed = Uint8Array.from(bytes, (byte, each) => (each === at ? byte ^ 1 : byte))
      return `${kind}.${kid}.${toBase64Url(changed)}`
    })
    const bad = [`${kind}.k0.${body}`, `${kind}.k9.${body}`, 'swt1.', 'swt1.k1.AAAA', ...flipped]
    for (const name of bad) expect([name, (await join(name, ADA)).text]).toEqual([name, missing])
    expect((await join(token, BOB)).text).toBe(missing)
    expect((await join(id, BOB)).text).toBe(missing)
    expect((await join(token, ADA, '&sandbox=other')).text).toBe(missing)
  })

  test('is invalid after its expiry, and valid while its key is listed', async () => {
    const { id } = await startCat()
    const user = await accountOf(ADA)
    const mintAt = async (kid: string, fill: number, nowMs: number): Promise<string> => {
      const keys = [{ kid, bytes: new Uint8Array(32).fill(fill) }] as const
      const options = {
        provider: 'host',
        lifeMs: 3_600_000,
        random: (each: Uint8Array<ArrayBuffer>) => void crypto.getRandomValues(each),
      }
      const tokens = await openSessionTokens(keys, options)
      return tokens.mint({ session: id, kind: 'pipe', user }, nowMs)
    }
    expect((await join(await mintAt('k1', 9, Date.now()), ADA)).text).toBe('open')
    expect((await join(await mintAt('k0', 8, Date.now()), ADA)).text).toBe('open')
    expect((await join(await mintAt('k1', 9, Date.now() - 3_600_001), ADA)).text).toContain(
      'session_not_found',
    )
    expect((await join(await mintAt('k2', 9, Date.now()), ADA)).text).toContain('session_not_found')
  })
})

/** The account of a credential. */
async function accountOf(token: string): Promise<string> {
  const { account } = (await (await get('/api/whoami', token)).json()) as { account: string }
  return account
}

describe('a malicious sandbox', () => {
  test('can return no token and no session of another sandbox', async () => {
    await using places = new FakeSandboxes()
    await using server = await startControl({ runner: places, bindings: { SESSION_TOKEN_SECRET } })
    for (const headers of [
      { [HEADER]: 'swt1.k1.FORGED' },
      { 'sandwire-session': `${'0'.repeat(32)}.${'1'.repeat(26)}`, 'sandwire-mode': 'pty' },
      { 'sandwire-session': '../..', 'sandwire-mode': 'pty' },
      {},
    ]) {
      places.socketHeaders = headers
      const handshake = await upgrade(server, '/attach?sandbox=dev&cmd=cat', V1)
      if (handshake.kind !== 'open') throw new Error(refusalOf(handshake))
      expect(handshake.socket.response.headers.get(HEADER)).toBeNull()
      handshake.socket.reset()
    }
  })
})

describe('a token in a URL', () => {
  const CANARY = serviceToken('canary-in-a-url', ['connect', 'exec', 'admin'])
  const bare = { ...V1, headers: [] }

  test('is accepted as a bearer token where a socket is opened', async () => {
    const handshake = await upgrade(control, `/attach?sandbox=dev&token=${ADA}&cmd=cat`, bare)
    expect((await outcomeOf(handshake)).text).toBe('open')
    const { token } = await startCat()
    expect((await outcomeOf(await upgrade(control, `/terminal/${token}?token=${ADA}`, bare))).text).toBe(
      'open',
    )
    expect(refusalOf(await upgrade(control, `/attach?cmd=cat&token=${ADA}x`, bare))).toBe('401 unauthorized')
  })

  test('is refused on all other routes', async () => {
    for (const path of ['/api/sandboxes', '/metrics', '/health', '/attach', '/']) {
      const response = await control.fetch(`${path}?token=${ADA}`, { headers: { authorization: '' } })
      expect([path, response.status]).toEqual([path, 400])
    }
    const made = await control.fetch(`/api/sandboxes?token=${ADA}`, { method: 'POST', json: { name: 'x' } })
    expect(made.status).toBe(400)
  })

  test('is refused beside another credential, and twice', async () => {
    const path = `/attach?sandbox=dev&cmd=cat&token=${ADA}`
    for (const headers of [
      [['Authorization', `Bearer ${ADA}`]],
      [['Authorization', `Bearer ${BOB}`]],
      [['Cookie', '__Host-sandwire=x']],
      [['Cookie', 'theme=dark; __Host-sandwire=']],
    ] as const)
      expect(refusalOf(await upgrade(control, path, { ...V1, headers }))).toBe('400 bad_request')
    expect(refusalOf(await upgrade(control, `${path}&token=${ADA}`, bare))).toBe('400 bad_request')
    expect(refusalOf(await upgrade(control, '/attach?cmd=cat&token=', bare))).toBe('400 bad_request')
    expect(refusalOf(await upgrade(control, '/attach?cmd=cat&token=a%0db', bare))).toBe('400 bad_request')
    const offered = { subprotocols: ['sandwire.v1', 'sandwire.ticket.x'], headers: [] }
    expect(refusalOf(await upgrade(control, path, offered))).toBe('400 bad_request')
  })

  test('is accepted beside cookies that are not credentials', async () => {
    for (const cookie of ['theme=dark', 'theme=dark; x__Host-sandwire=1', '__Host-sandwire-login=x']) {
      const headers = [['Cookie', cookie]] as const
      const path = `/attach?sandbox=dev&cmd=cat&token=${ADA}`
      expect((await outcomeOf(await upgrade(control, path, { ...V1, headers }))).text).toBe('open')
    }
  })

  test('still needs an origin of ours', async () => {
    const headers = [['Origin', 'https://evil.example']] as const
    const handshake = await upgrade(control, `/attach?cmd=cat&token=${ADA}`, { ...V1, headers })
    expect(refusalOf(handshake)).toBe('403 origin_refused')
  })

  test('is never logged, but that the setting is on is', async () => {
    for (const path of [
      `/attach?sandbox=dev&cmd=cat&token=${CANARY}`,
      `/attach?sandbox=canary&cmd=cat&token=${CANARY}`,
      `/attach?sandbox=canary&cmd=no-such-command&token=${CANARY}`,
      `/attach?cmd=&token=${CANARY}`,
      `/attach?token=${CANARY}&token=${CANARY}`,
      `/terminal/x?token=${CANARY}`,
      `/nowhere?token=${CANARY}`,
    ]) {
      const handshake = await upgrade(control, path, bare)
      if (handshake.kind === 'open') handshake.socket.reset()
      else expect(JSON.stringify(handshake)).not.toContain(CANARY.slice(-20))
    }
    const mark = await control.fetch('/health')
    const id = mark.headers.get('x-request-id') ?? 'none'
    await eventually(() => control.log.some((line) => line.includes(id)), { what: 'the last line' })
    expect(control.log.filter((line) => line.includes(CANARY.slice(-20)))).toEqual([])
    expect(control.log.filter((line) => line.includes('"token_in_url"'))).toHaveLength(1)
  })

  test('is refused everywhere unless an operator enables it', async () => {
    await using places = new FakeSandboxes()
    await using server = await startControl({ runner: places, bindings: { JWT_SECRET } })
    expect(refusalOf(await upgrade(server, `/attach?cmd=cat&token=${ADA}`, bare))).toBe('400 bad_request')
    expect(places.starts).toBe(0)
    expect(server.log.filter((line) => line.includes('token_in_url'))).toEqual([])
  })
})
