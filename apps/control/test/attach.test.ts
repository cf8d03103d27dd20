import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { sandboxIdOf } from '@sandwire/internal-api'
import { ERRORS, type ErrorCode } from '@sandwire/protocol'
import { eventually, OPCODE, type RawHandshake, type RawWebSocket } from '@sandwire/testing'
import { type RunningControl, startControl } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
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
beforeEach(() => {
  sandboxes.seen.length = 0
  sandboxes.startMs = 0
  sandboxes.socketHeaders = {}
  sandboxes.version = { name: 'sandboxd', version: '0', protocol: 1, compatible_from: 1 }
})

const V1 = { subprotocols: ['sandwire.v1'] }
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

function socketOf(handshake: RawHandshake): RawWebSocket {
  if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${JSON.stringify(handshake)}`)
  return handshake.socket
}

/** Opens a session and returns its id. */
async function openSession(query: string): Promise<{ socket: RawWebSocket; session: string }> {
  const socket = socketOf(await upgrade(control, `/attach?${query}`, V1))
  const session = text((await socket.nextFrame()).payload).replace('session ', '')
  return { socket, session }
}

/** The code of the error frame, checked against its close code in the error table. */
async function frameOf(handshake: RawHandshake): Promise<string> {
  await using socket = socketOf(handshake)
  const frame: unknown = JSON.parse(text((await socket.nextFrame()).payload))
  const code = String(fieldOf(frame, 'code')) as ErrorCode
  const close = await socket.nextFrame()
  expect(close.opcode).toBe(OPCODE.close)
  expect(new DataView(close.payload.buffer, close.payload.byteOffset).getUint16(0)).toBe(ERRORS[code].close)
  return code
}

const objects = (): Promise<number> => control.metric('sandwire_objects_constructed_total{class="sandbox"}')

describe('an attach', () => {
  test.each([{}, V1])('passes bytes both ways, and the subprotocol, with %j', async (options) => {
    await using socket = socketOf(await upgrade(control, '/attach?sandbox=dev&cmd=cat', options))
    expect(socket.response.headers.get('sec-websocket-protocol')).toBe(options === V1 ? 'sandwire.v1' : null)
    await socket.nextFrame()
    const bytes = crypto.getRandomValues(new Uint8Array(100_000).subarray(0, 65_536))
    await socket.sendFrame({ opcode: OPCODE.binary, payload: bytes })
    expect(Buffer.from((await socket.nextFrame()).payload).equals(bytes)).toBe(true)
  })

  test('[V3] starts nothing when it offers only unknown subprotocols', async () => {
    for (const subprotocols of [['sandwire.v9'], ['chat', 'superchat']]) {
      const handshake = await upgrade(control, '/attach?sandbox=dev&cmd=cat', { subprotocols })
      expect(refusalOf(handshake)).toBe('426 version_unsupported')
    }
    expect(sandboxes.seen).toEqual([])
    const several = { subprotocols: ['sandwire.v9', 'sandwire.v1'] }
    await using socket = socketOf(await upgrade(control, '/attach?sandbox=dev&cmd=cat', several))
    expect(socket.response.headers.get('sec-websocket-protocol')).toBe('sandwire.v1')
  })

  test('sends sandboxd a canonical query and a token bound to it', async () => {
    const query = 'arg=%61%20b&sandbox=dev&cmd=bash&create=1&mode=pty&arg=%C3%A9%27*~!()'
    await using socket = socketOf(await upgrade(control, `/attach?${query}`))
    const session = text((await socket.nextFrame()).payload).replace('session ', '')
    const { claims } = sandboxes.seen.at(-1) ?? {}
    expect(claims).toMatchObject({
      method: 'GET',
      identity: 'local',
      authority: 'driver',
      exec: true,
      session,
      path: '/attach?cmd=bash&arg=a+b&arg=%C3%A9%27*%7E%21%28%29&mode=pty',
    })
    expect(sandboxIdOf(session)).toBe(claims?.sandbox)
    expect(Number(claims?.expiresMs) - Number(claims?.issuedMs)).toBeLessThanOrEqual(60_000)
    expect(sandboxes.refusals).toEqual([])
  })

  test('passes on no header of the caller, and none of the sandbox back (threat T2)', async () => {
    sandboxes.socketHeaders = { 'set-cookie': '__Host-sandwire=evil', 'x-evil': '1' }
    const { TOKEN } = await import('./support/control.ts')
    const headers = [
      ['Authorization', `Bearer ${TOKEN}`],
      ['Cookie', 'a=CANARY'],
      ['Origin', control.origin],
      ['X-Forwarded-For', 'CANARY'],
      ['X-Sandwire-Call', '{"identity":"CANARY"}'],
      ['User-Agent', 'CANARY'],
    ] as const
    await using socket = socketOf(await upgrade(control, '/attach?sandbox=dev&cmd=cat', { headers }))
    await socket.nextFrame()
    const sent = sandboxes.seen.at(-1)?.headers ?? {}
    expect(JSON.stringify(sent)).not.toContain('CANARY')
    expect(JSON.stringify(sent)).not.toContain(TOKEN)
    expect(sent).not.toHaveProperty('origin')
    expect(socket.response.headers.get('set-cookie')).toBeNull()
    expect(socket.response.headers.get('x-evil')).toBeNull()
  })

  test('(threat T2) maps a refusal in a 101 to its code and our own message, and closes the socket', async () => {
    const before = sandboxes.openSockets
    for (const [reported, code] of [
      ['too_many_sessions', 'too_many_sessions'],
      ['internal', 'sandbox_unreachable'],
      ['constructor', 'sandbox_unreachable'],
      ['', 'sandbox_unreachable'],
    ] as const) {
      sandboxes.socketHeaders = { 'sandwire-refusal': reported }
      const v1 = await upgrade(control, '/attach?sandbox=dev&cmd=cat', V1)
      expect([reported, await frameOf(v1)]).toEqual([reported, code])
      const plain = await upgrade(control, '/attach?sandbox=dev&cmd=cat')
      expect([reported, refusalOf(plain)]).toEqual([reported, `${ERRORS[code].status} ${code}`])
    }
    await eventually(() => sandboxes.openSockets <= before, { what: 'the sockets to be closed' })
  })

  test('creates a sandbox for a new name, once for concurrent requests', async () => {
    sandboxes.startMs = 100
    const before = sandboxes.starts
    const all = await Promise.all(
      Array.from({ length: 20 }, () => upgrade(control, '/attach?sandbox=crowd&cmd=cat')),
    )
    const sockets = all.map(socketOf)
    const frames = await Promise.all(sockets.map((socket) => socket.nextFrame()))
    const places = frames.map((frame) => sandboxIdOf(text(frame.payload).replace('session ', '')))
    expect(new Set(places).size).toBe(1)
    expect(sandboxes.starts - before).toBe(1)
    for (const socket of sockets) socket.reset()
  })

  test('creates none with create=0', async () => {
    expect(await frameOf(await upgrade(control, '/attach?sandbox=ghost&create=0&cmd=cat', V1))).toBe(
      'sandbox_not_found',
    )
    expect(refusalOf(await upgrade(control, '/attach?sandbox=ghost&create=0&cmd=cat'))).toBe(
      '404 sandbox_not_found',
    )
    expect((await control.fetch('/api/sandboxes/ghost')).status).toBe(404)
  })

  test('without a name selects the default sandbox', async () => {
    await using socket = socketOf(await upgrade(control, '/attach?cmd=cat'))
    await socket.nextFrame()
    expect((await control.fetch('/api/sandboxes/default')).status).toBe(200)
  })

  test('answers 426 without an upgrade, after all other checks', async () => {
    expect((await control.fetch('/attach?sandbox=dev&cmd=cat&session=')).status).toBe(400)
    expect((await control.fetch('/attach?sandbox=dev&cmd=cat')).status).toBe(426)
    expect((await control.fetch('/attach?sandbox=dev', { headers: { authorization: '' } })).status).toBe(401)
  })

  test('refuses a sandboxd of another version and names the outdated side', async () => {
    sandboxes.version = { protocol: 0, compatible_from: 0 }
    expect(await frameOf(await upgrade(control, '/attach?sandbox=old&cmd=cat', V1))).toBe(
      'version_unsupported',
    )
    sandboxes.version = { protocol: 2, compatible_from: 1 }
    socketOf(await upgrade(control, '/attach?sandbox=old&cmd=cat', V1)).reset()
  })
})

describe('joining a session', () => {
  test('works by id, on both routes', async () => {
    const { socket, session } = await openSession('sandbox=dev&cmd=cat')
    for (const path of [
      `/attach?session=${session}`,
      `/attach?sandbox=dev&session=${session}&role=viewer`,
      `/terminal/${session}`,
      `/terminal/${session}?role=viewer&cols=100`,
    ]) {
      await using joined = socketOf(await upgrade(control, path, V1))
      expect(text((await joined.nextFrame()).payload)).toBe(`session ${session}`)
      expect(sandboxes.seen.at(-1)?.claims.session).toBeUndefined()
    }
    socket.reset()
  })

  test('never starts a sandbox', async () => {
    const { socket, session } = await openSession('sandbox=sleepy&cmd=cat')
    socket.reset()
    expect((await control.fetch('/api/sandboxes/sleepy/stop', { method: 'POST' })).status).toBe(200)
    const starts = sandboxes.starts
    expect(await frameOf(await upgrade(control, `/terminal/${session}`, V1))).toBe('sandbox_stopped')
    expect(await frameOf(await upgrade(control, `/attach?session=${session}`, V1))).toBe('sandbox_stopped')
    expect((await control.fetch(`/api/account/sessions/${session}`)).status).toBe(409)
    expect(sandboxes.starts).toBe(starts)
    expect(await (await control.fetch('/api/sandboxes/sleepy')).json()).toMatchObject({ state: 'stopped' })
  })

  test('of another sandbox than the named one is refused', async () => {
    const { socket, session } = await openSession('sandbox=dev&cmd=cat')
    await openSession('sandbox=neighbor&cmd=cat')
    expect(await frameOf(await upgrade(control, `/attach?sandbox=neighbor&session=${session}`, V1))).toBe(
      'session_not_found',
    )
    socket.reset()
  })

  test('that does not exist is refused with our own message', async () => {
    const { socket, session } = await openSession('sandbox=dev&cmd=cat')
    const other = `${sandboxIdOf(session) ?? ''}.${'0'.repeat(26)}`
    const response = await control.fetch(`/api/account/sessions/${other}`)
    expect(response.status).toBe(404)
    expect(await response.text()).not.toContain('RAW')
    expect(await frameOf(await upgrade(control, `/terminal/${other}`, V1))).toBe('session_not_found')
    socket.reset()
  })
})

describe('a forged id', () => {
  test('calls no object on any route (threat T7)', async () => {
    await control.fetch('/api/sandboxes')
    const before = await objects()
    const id = '0123456789abcdefghjkmnpqrstvwxyz'
    const session = `${id}.${'0'.repeat(26)}`
    expect(await frameOf(await upgrade(control, `/attach?sandbox=${id}&cmd=cat`, V1))).toBe(
      'sandbox_not_found',
    )
    expect(await frameOf(await upgrade(control, `/terminal/${session}`, V1))).toBe('session_not_found')
    for (const [method, path] of [
      ['GET', `/api/sandboxes/${id}`],
      ['DELETE', `/api/sandboxes/${id}`],
      ['POST', `/api/sandboxes/${id}/start`],
      ['POST', `/api/sandboxes/${id}/stop`],
      ['GET', `/api/account/sessions/${session}`],
      ['DELETE', `/api/account/sessions/${session}`],
      ['PUT', `/api/account/sessions/${session}/pin`],
      ['GET', `/logs/${id}`],
    ] as const)
      expect([path, (await control.fetch(path, { method })).status]).toEqual([path, 404])
    expect(await objects()).toBe(before)
  })

  test('gets the same response as a destroyed sandbox and one of another account (threat T4)', async () => {
    const made = await (
      await control.fetch('/api/sandboxes', { method: 'POST', json: { name: 'brief' } })
    ).json()
    const id = String(fieldOf(made, 'id'))
    expect((await control.fetch('/api/sandboxes/brief', { method: 'DELETE' })).status).toBe(204)
    const bodies: string[] = []
    for (const ref of [id, '0123456789abcdefghjkmnpqrstvwxyz', 'brief']) {
      const response = await control.fetch(`/api/sandboxes/${ref}`)
      bodies.push((await response.text()).replace(/"request_id":"[^"]+"/, ''))
    }
    expect(new Set(bodies).size).toBe(1)
    for (const place of [id, '0123456789abcdefghjkmnpqrstvwxyz']) {
      const session = `${place}.${'0'.repeat(26)}`
      expect(await frameOf(await upgrade(control, `/terminal/${session}`, V1))).toBe('session_not_found')
      const shown = await control.fetch(`/api/account/sessions/${session}`)
      expect(await shown.json()).toMatchObject({ error: { code: 'session_not_found' } })
    }
  })
})

describe('a running sandbox', () => {
  test('is found again after it moved', async () => {
    const { socket, session } = await openSession('sandbox=mover&cmd=cat')
    socket.reset()
    const id = sandboxIdOf(session) ?? ''
    const spec = control.host.specs.get(id)
    if (spec === undefined) throw new Error('The sandbox was never started')
    // Without control's knowledge: stopped, then started at another address.
    await sandboxes.stop(id)
    const address = control.host.lead(await sandboxes.start(spec))
    control.host.sandboxes.set(id, { id, state: 'running', address, epoch: 'moved', startedMs: 1 })
    const again = await openSession('sandbox=mover&cmd=cat')
    expect(sandboxIdOf(again.session)).toBe(id)
    again.socket.reset()
  })

  test('is found again when another sandbox has its slot, and the other executes nothing (threat T7)', async () => {
    const { socket, session } = await openSession('sandbox=stale&cmd=cat')
    socket.reset()
    const other = await openSession('sandbox=other&cmd=cat')
    other.socket.reset()
    const [id, otherId] = [session, other.session].map((each) => sandboxIdOf(each) ?? '')
    if (id === undefined || otherId === undefined) throw new Error('These are no sessions')
    const { host } = control
    const [before, after] = [host.sandboxes.get(id), host.sandboxes.get(otherId)]
    if (before?.state !== 'running' || after?.state !== 'running') throw new Error('They do not run')
    // Without control's knowledge: the two slots are swapped.
    host.sandboxes.set(id, { ...before, address: after.address })
    host.swap(before.address, after.address)
    const askedBefore = host.count(`GET /sandboxes/${id}`)
    const refused = sandboxes.refusals.length
    const again = await openSession('sandbox=stale&cmd=cat')
    again.socket.reset()
    expect(sandboxIdOf(again.session)).toBe(id)
    expect(sandboxes.refusals).toHaveLength(refused + 1)
    expect(host.count(`GET /sandboxes/${id}`)).toBe(askedBefore + 1)
    // The host reports the wrong slot too: an error, not the response of another sandbox.
    expect(refusalOf(await upgrade(control, '/attach?sandbox=other&cmd=cat'))).toBe('502 sandbox_unreachable')
    host.sandboxes.set(otherId, { ...after, address: before.address })
    const last = await openSession('sandbox=other&cmd=cat')
    last.socket.reset()
    expect(sandboxIdOf(last.session)).toBe(otherId)
  })

  test('is restarted for a process after it ended by itself', async () => {
    const { socket, session } = await openSession('sandbox=phoenix&cmd=cat')
    socket.reset()
    const id = sandboxIdOf(session) ?? ''
    await sandboxes.stop(id)
    control.host.sandboxes.set(id, { id, state: 'stopped', reason: 'oom' })
    const again = await openSession('sandbox=phoenix&cmd=cat')
    again.socket.reset()
    expect(await (await control.fetch('/api/sandboxes/phoenix')).json()).toMatchObject({ state: 'running' })
  })

  test('is polled by the alarm, which updates the index and stops it when idle', async () => {
    await using quick = await startControl({
      runner: sandboxes,
      config: { alarmMs: 100, sleepAfterMs: 1_500 },
    })
    const made = await (
      await quick.fetch('/api/sandboxes', { method: 'POST', json: { name: 'quick' } })
    ).json()
    const id = String(fieldOf(made, 'id'))
    await eventually(
      () => sandboxes.seen.some(({ claims }) => claims.sandbox === id && claims.path === '/activity'),
      {
        what: 'a poll of the sandbox',
      },
    )
    expect(sandboxes.seen.find(({ claims }) => claims.path === '/activity')?.claims).toMatchObject({
      authority: 'control',
      exec: false,
    })
    const joined: unknown[] = []
    const session = await (async () => {
      const handshake = await upgrade(quick, '/attach?sandbox=quick&cmd=cat', V1)
      await using socket = socketOf(handshake)
      return text((await socket.nextFrame()).payload).replace('session ', '')
    })()
    const stateOf = async (): Promise<unknown> =>
      fieldOf(await (await quick.fetch('/api/sandboxes/quick')).json(), 'state')
    // The reconnects of an open tab are not activity.
    const sleeps = async (): Promise<boolean> => {
      const tab = await upgrade(quick, `/terminal/${session}`, V1)
      joined.push(tab.kind)
      if (tab.kind === 'open') tab.socket.reset()
      return (await stateOf()) === 'stopped'
    }
    await eventually(sleeps, { what: 'the sandbox to stop' })
    expect(joined.length).toBeGreaterThan(3)
    expect(quick.host.count(`POST /sandboxes/${id}/stop`)).toBe(1)
  })
})

test('the interface of an agent is refused with what the operator must set, also without an upgrade', async () => {
  const response = await control.fetch('/attach?cmd=claude')
  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({
    error: { code: 'agent_not_configured', message: expect.stringContaining('set ANTHROPIC_API_KEY') },
  })
  // A path names any program.
  expect((await control.fetch('/attach?cmd=/bin/claude')).status).toBe(426)
})
