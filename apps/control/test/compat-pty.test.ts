import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eventually, PtyClient, TextClient } from '@sandwire/testing'
import { openSessionTokens, type SessionTokens } from '../src/auth/session-token.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { CookieJar } from './support/cookie-jar.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { JWT_SECRET, ApiClient, textIn, tokenOf, UNLIMITED } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { fieldOf } from './support/json.ts'

const KEY = new Uint8Array(32).fill(7)
const SESSION_TOKEN_SECRET = `k1:${Buffer.from(KEY).toString('base64')}`
const TIMEOUT_MS = 180_000
setDefaultTimeout(TIMEOUT_MS)
/** A shell without the login files of this machine. */
const SHELL = { SHELL: '/bin/sh', HOME: '/nonexistent' }
const CAT = { cmd: 'cat', mode: 'pty', keep: 3_600 }
const TEMPLATES = [
  { id: 'claude', title: 'An agent', argv: ['sh', '-c', 'echo "I am $0"; exec cat', 'claude'], mode: 'pty' },
  { id: 'asks', title: 'Asks', argv: ['echo', '{what}'], params: { what: { pattern: '[a-z]+' } } },
]

let sandboxes: RealSandboxes
let control: RunningControl
let ada: ApiClient
let sandbox: string
beforeAll(async () => {
  sandboxes = new RealSandboxes(SHELL)
  control = await startControl({
    runner: sandboxes,
    config: { limits: UNLIMITED, commands: { templates: TEMPLATES } },
    bindings: { JWT_SECRET, SESSION_TOKEN_SECRET },
  })
  ada = await ApiClient.named(control, 'ada')
  sandbox = textIn(await ada.post('/api/sandboxes', { name: 'dev' }), 'id')
}, TIMEOUT_MS)
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

type Query = Readonly<Record<string, string>>

/** Opens a terminal as a user; the sandbox is ada's by default. */
function open(query: Query = {}, caller: ApiClient = ada, protocols: readonly string[] = []): PtyClient {
  const headers = { ...Object.fromEntries(caller.headers), host: `localhost:${control.port}` }
  return new PtyClient(
    { port: control.port, headers },
    `/ws/pty?${new URLSearchParams({ sandbox, ...query })}`,
    protocols,
  )
}

/** Messages and close of a refused client. */
async function refusalIn(client: PtyClient): Promise<unknown> {
  await using open = client
  return [await open.closed(), ...open.messages]
}

const NOT_FOUND = [{ code: 4001, reason: 'session_not_found' }, { type: 'session_not_found' }]
/** Time to attach with a token before it expires. */
const EXPIRES_IN_MS = 5_000
const newId = (): string => crypto.randomUUID()

/** Starts a session with a unique marker and disconnects. */
async function leaveMark(query: Query = {}): Promise<{ readonly mark: string; readonly token: string }> {
  const mark = `mark-${newId()}`
  await using client = open(query)
  const token = await client.name()
  client.type(`echo ${mark}\n`)
  await client.waitForOutput(`${mark}\r\n`)
  return { mark, token }
}

/** With the keys of control. */
function ownTokens(): Promise<SessionTokens> {
  return openSessionTokens([{ kid: 'k1', bytes: KEY }], {
    provider: 'host',
    lifeMs: 3_600_000,
    random: (bytes) => crypto.getRandomValues(bytes),
  })
}

async function sessionsOf(caller: ApiClient): Promise<number> {
  const { body } = await caller.get('/api/account/sessions')
  return Object(fieldOf(body, 'sessions')).length as number
}

describe('a terminal over /ws/pty', () => {
  test('runs the shell by default, under an opaque name', async () => {
    await using client = open()
    const name = await client.name()
    expect(name).toMatch(/^swt1\.k1\./)
    expect(name).not.toContain(sandbox)
    client.type('echo $((6 * 7))\nexit 5\n')
    await client.waitForOutput('42')
    expect(await client.first('exit')).toEqual({ type: 'exit', code: 5, session_id: name })
    for (const { type, session_id } of client.messages) if (type !== 'history') expect(session_id).toBe(name)
  })

  test('runs a template by its id and no other command', async () => {
    await using client = open({ provider: 'claude' })
    await client.waitForOutput('I am claude')
    expect((await ada.get('/api/config')).body).toMatchObject({ pty_providers: ['shell', 'claude'] })
    for (const provider of ['asks', 'bash', '../sh', 'sh -c id', '\u001b]0;x\u0007'])
      expect(await refusalIn(open({ provider }))).toEqual([
        { code: 4003, reason: expect.stringContaining('Unknown provider: ') },
        {
          type: 'error',
          data: `Unknown provider: ${provider.replace(/[^ -~]/g, '')}. Available: ['shell', 'claude']`,
        },
      ])
  })

  test('names the unknown parameter it refuses', async () => {
    const expectBad = async (query: Query, name: string): Promise<void> =>
      expect(await refusalIn(open(query))).toEqual([
        { code: 4004, reason: 'bad_request' },
        { type: 'error', data: expect.stringContaining(`"${name}"`) },
      ])
    await expectBad({ cmd: 'id' }, 'cmd')
    await expectBad({ resume: 'yes' }, 'resume')
    await expectBad({ session_id: 'a b' }, 'session_id')
    await expectBad({ session_id: 'x'.repeat(129) }, 'session_id')
  })

  test('needs an upgrade', async () => {
    expect((await ada.get(`/ws/pty?sandbox=${sandbox}`)).status).toBe(426)
  })

  test('selects its subprotocol if offered and refuses others', async () => {
    await using client = open({}, ada, ['sandwire.envelope'])
    await client.name()
    expect(client.protocol).toBe('sandwire.envelope')
    expect(refusalOf(await upgrade(control, '/ws/pty', { subprotocols: ['graphql-ws'] }))).toBe('open')
  })
})

describe('reconnecting', () => {
  test('with the reported name joins the same session and renews the name', async () => {
    const { mark, token } = await leaveMark()
    await using again = open({ session_id: token, resume: '1' })
    expect((await again.first('history'))['data']).toContain(mark)
    expect(await again.name()).not.toBe(token)
    again.type('echo again\n')
    await again.waitForOutput('again\r\n')
  })

  test('with an alias of the client joins the same session', async () => {
    const session_id = newId()
    const { mark } = await leaveMark({ session_id, provider: 'shell', session_name: 'Build' })
    for (const resume of ['0', '1']) {
      await using again = open({ session_id, provider: 'shell', resume })
      expect((await again.first('history'))['data']).toContain(mark)
    }
  })

  test('concurrently with one alias starts one session', async () => {
    const before = await sessionsOf(ada)
    const session_id = newId()
    const both = [open({ session_id }), open({ session_id })]
    await Promise.all(both.map((client) => client.name()))
    both[0]?.type('echo together\n')
    await Promise.all(both.map((client) => client.waitForOutput('together\r\n')))
    await Promise.all(both.map((client) => client.disconnect()))
    expect(await sessionsOf(ada)).toBe(before + 1)
  })

  test('with force_new starts a session that takes over the alias', async () => {
    const session_id = newId()
    const { mark } = await leaveMark({ session_id })
    const { mark: newer } = await leaveMark({ session_id, force_new: '1' })
    await using again = open({ session_id })
    const history = String((await again.first('history'))['data'])
    expect(history).toContain(newer)
    expect(history).not.toContain(mark)
  })

  test('to an exited process reports the exit with resume and starts a new one otherwise', async () => {
    const session_id = newId()
    {
      await using client = open({ session_id })
      await client.name()
      client.type('echo last words; exit 9\n')
      await client.first('exit')
    }
    {
      await using resumed = open({ session_id, resume: 'true' })
      expect(await resumed.first('exit')).toMatchObject({ code: 9 })
      expect(resumed.text('history')).toContain('last words')
    }
    await using fresh = open({ session_id })
    await fresh.name()
    fresh.type('echo alive\n')
    await fresh.waitForOutput('alive\r\n')
  })

  test('with an unknown alias starts a session, but not with resume', async () => {
    expect(await refusalIn(open({ session_id: newId(), resume: '1' }))).toEqual(NOT_FOUND)
    expect(await refusalIn(open({ resume: '1' }))).toEqual(NOT_FOUND)
    expect(await refusalIn(open({ session_id: 'not a name!', resume: '1' }))).toEqual(NOT_FOUND)
    await using client = open({ session_id: newId() })
    await client.name()
  })
})

describe('the name of a session (threat T4)', () => {
  test('is not found if it is forged, expired or malformed', async () => {
    const { token } = await leaveMark()
    const own = await ownTokens()
    const account = textIn(await ada.get('/api/whoami'), 'account')
    const session = `${sandbox}.${'0'.repeat(26)}`
    const binding = { session, kind: 'pty', user: account } as const
    const forged = `${token.slice(0, -4)}AAAA`
    const alive = (await own.read(token, account, Date.now())) ?? ''
    const expired = await own.mint({ ...binding, session: alive }, Date.now() - 3_600_001)
    const missing = await own.mint(binding, Date.now())
    for (const session_id of [forged, expired, missing, session, 'swt1.k1.', 'swt1.kX.AAAA'])
      for (const resume of ['0', '1'])
        expect(await refusalIn(open({ session_id, resume }))).toEqual(NOT_FOUND)
  })

  test('does not end its connection when it expires, and a new one was issued with it', async () => {
    const { token } = await leaveMark()
    const own = await ownTokens()
    const user = textIn(await ada.get('/api/whoami'), 'account')
    const session = (await own.read(token, user, Date.now())) ?? ''
    const old = await own.mint({ session, kind: 'pty', user }, Date.now() - 3_600_000 + EXPIRES_IN_MS)
    await using client = open({ session_id: old, resume: '1' })
    const renewed = await client.name()
    expect(renewed).not.toBe(old)
    const isExpired = async () => (await own.read(old, user, Date.now())) === undefined
    await eventually(isExpired, { what: 'the expiry' })
    expect(await refusalIn(open({ session_id: old, resume: '1' }))).toEqual(NOT_FOUND)
    client.type('echo af""ter\n')
    await client.waitForOutput('after\r\n')
    await using again = open({ session_id: renewed, resume: '1' })
    expect(await again.name()).not.toBe(old)
  })

  test('is not valid for another account, whether token or alias', async () => {
    const session_id = newId()
    const { mark, token } = await leaveMark({ session_id })
    const bob = await ApiClient.named(control, 'bob')
    const account = textIn(await bob.get('/api/whoami'), 'account')
    const { body } = await ada.post('/api/grants', { sandbox, role: 'collaborator', account })
    expect(body).toMatchObject({ grant: expect.any(String) })
    expect(await refusalIn(open({ session_id: token, resume: '1' }, bob))).toEqual(NOT_FOUND)
    expect(await refusalIn(open({ session_id, resume: '1' }, bob))).toEqual(NOT_FOUND)
    await using his = open({ session_id }, bob)
    await his.name()
    his.type('echo mine\n')
    await his.waitForOutput('mine\r\n')
    expect(his.text('history')).toBe('')
    await using hers = open({ session_id })
    expect((await hers.first('history'))['data']).toContain(mark)
  })

  test('is not valid after access was revoked (threat T6)', async () => {
    const eve = await ApiClient.named(control, `eve-${newId()}`)
    const account = textIn(await eve.get('/api/whoami'), 'account')
    const grant = textIn(await ada.post('/api/grants', { sandbox, role: 'collaborator', account }), 'grant')
    const session_id = newId()
    const client = open({ session_id }, eve)
    const token = await client.name()
    await ada.delete(`/api/grants/${grant}`)
    expect(await client.closed()).toEqual({ code: 4008, reason: 'revoked' })
    for (const name of [token, session_id])
      expect(await refusalIn(open({ session_id: name, resume: '1' }, eve))).toEqual(NOT_FOUND)
    expect(await refusalIn(open({ session_id }, eve))).toEqual([
      { code: 4001, reason: 'sandbox_not_found' },
      { type: 'error', data: 'No sandbox has this id or name' },
    ])
  })

  test('does not start a stopped sandbox; starting a session does', async () => {
    const sleeper = textIn(await ada.post('/api/sandboxes', { name: `sleeper-${Date.now()}` }), 'id')
    const session_id = newId()
    const client = open({ sandbox: sleeper, session_id })
    const token = await client.name()
    await client.disconnect()
    await ada.post(`/api/sandboxes/${sleeper}/stop?discard=1`, {})
    const state = async () => textIn(await ada.get(`/api/sandboxes/${sleeper}`), 'state')
    for (const name of [token, session_id])
      expect(await refusalIn(open({ sandbox: sleeper, session_id: name, resume: '1' }))).toEqual(NOT_FOUND)
    expect(await state()).toBe('stopped')
    await using again = open({ sandbox: sleeper, session_id })
    await again.name()
    expect(await state()).toBe('running')
  })
})

describe('authorization', () => {
  test('refuses input of a viewer (threat T5)', async () => {
    const { token } = await leaveMark()
    const session =
      (await (await ownTokens()).read(token, textIn(await ada.get('/api/whoami'), 'account'), Date.now())) ??
      ''
    const vic = await ApiClient.named(control, 'vic')
    const account = textIn(await vic.get('/api/whoami'), 'account')
    await ada.post('/api/grants', { session, role: 'viewer', account })
    await using viewer = open({ session_id: session }, vic)
    await viewer.name()
    viewer.type('echo never\n')
    expect(await viewer.first('error')).toEqual({
      type: 'error',
      data: 'Cannot take input: this connection is read-only',
    })
    await using owner = open({ session_id: session })
    await owner.name()
    owner.type('echo seen\n')
    await viewer.waitForOutput('seen\r\n')
    expect(viewer.text('output')).not.toContain('never')
  })

  test('lets a credential without exec start a template but no shell (threat T9)', async () => {
    const narrow = new ApiClient(control, await tokenOf('ada', { scope: 'sandbox:connect' }))
    for (const query of [{}, { session_id: newId() }, { force_new: '1' }])
      expect(await refusalIn(open(query, narrow))).toEqual([
        { code: 4008, reason: 'forbidden' },
        { type: 'error', data: expect.stringContaining('"exec"') },
      ])
    await using template = open({ provider: 'claude' }, narrow)
    await template.waitForOutput('I am claude')
  })

  test('accepts a ticket once and selects the subprotocol', async () => {
    const ticket = textIn(await ada.post('/api/tickets', { sandbox }), 'ticket')
    const anonymous = new ApiClient(control, undefined)
    const offers = ['sandwire.envelope', `sandwire.ticket.${ticket}`]
    await using client = open({ session_id: newId() }, anonymous, offers)
    await client.name()
    expect(client.protocol).toBe('sandwire.envelope')
    await using again = open({}, anonymous, offers)
    await again.closed()
    expect(again.hasOpened).toBe(false)
  })
})

describe('a text terminal at /terminal/:session', () => {
  const openText = (session: string, caller: ApiClient = ada, offers: readonly string[] = []): TextClient => {
    const headers = { ...Object.fromEntries(caller.headers), host: `localhost:${control.port}` }
    return new TextClient({ port: control.port, headers }, `/terminal/${session}`, offers)
  }
  const begin = async (): Promise<string> =>
    textIn(await ada.post(`/api/sandboxes/${sandbox}/sessions`, CAT), 'id')
  const refusal = async (client: TextClient): Promise<unknown> => {
    await using open = client
    return [await open.closed(), open.text]
  }

  test('[P4] shows the screen and takes what is typed, in the four lines of a page', async () => {
    const session = await begin()
    const { token = '' } = Object((await ada.get(`/api/account/sessions/${session}`)).body) as {
      token?: string
    }
    for (const [times, name] of [session, token].entries()) {
      const options: unknown = { headers: Object.fromEntries(ada.headers) }
      const terminal = { text: '', write: (text: string) => (terminal.text += text) }
      const ws = new WebSocket(`ws://localhost:${control.port}/terminal/${name}`, options as string[])
      ws.onmessage = (e) => terminal.write(e.data as string)
      const onData = (data: string): void => ws.send(data)
      await eventually(() => terminal.text.startsWith('\u001bc'), { what: 'the screen' })
      onData(`hello ${times}\r`)
      await eventually(() => terminal.text.includes(`hello ${times}\r\nhello ${times}\r\n`), {
        what: 'the echo of the terminal and of cat',
      })
      ws.close()
    }
  })

  test('[Y3] lets a viewer watch and not type (threat T5)', async () => {
    const session = await begin()
    const vic = await ApiClient.named(control, `vic-${newId()}`)
    const account = textIn(await vic.get('/api/whoami'), 'account')
    await ada.post('/api/grants', { session, role: 'viewer', account })
    await using viewer = openText(session, vic)
    await viewer.waitFor('\u001bc')
    viewer.type('never\r')
    await viewer.waitFor('\u0007')
    await using owner = openText(session)
    await owner.waitFor('\u001bc')
    owner.type('seen\r')
    await viewer.waitFor('seen\r\nseen')
    expect(viewer.text).not.toContain('never')
    expect(await refusal(openText(`${session}?role=driver`, vic))).toMatchObject([
      { reason: 'forbidden' },
      expect.any(String),
    ])
  })

  test("answers another account's session like a missing one (threat T4)", async () => {
    const session = await begin()
    const bob = await ApiClient.named(control, `bob-${newId()}`)
    const missing = [{ code: 4404, reason: 'session_not_found' }, expect.stringMatching(/^\r\n\[.*\]\r\n$/)]
    const foreign = await refusal(openText(session, bob))
    expect(foreign).toEqual(missing)
    expect(await refusal(openText(`${session.slice(0, -8)}00000000`, bob))).toEqual(foreign)
    expect(await refusal(openText(`${sandbox}.${'0'.repeat(26)}`))).toEqual(foreign)
  })

  test('[Y6] accepts a ticket once, and selects the subprotocol', async () => {
    const session = await begin()
    const ticket = textIn(await ada.post('/api/tickets', { session, role: 'driver' }), 'ticket')
    const anonymous = new ApiClient(control, undefined)
    const offers = ['sandwire.envelope', `sandwire.ticket.${ticket}`]
    await using client = openText(session, anonymous, offers)
    await client.waitFor('\u001bc')
    expect(client.protocol).toBe('sandwire.envelope')
    await using again = openText(session, anonymous, offers)
    await again.closed()
    expect(again.hasOpened).toBe(false)
  })

  test('closes the connection of a revoked grant (threat T6)', async () => {
    const session = await begin()
    const eve = await ApiClient.named(control, `eve-${newId()}`)
    const account = textIn(await eve.get('/api/whoami'), 'account')
    const grant = textIn(await ada.post('/api/grants', { session, role: 'collaborator', account }), 'grant')
    const client = openText(session, eve)
    await client.waitFor('\u001bc')
    await ada.delete(`/api/grants/${grant}`)
    expect(await client.closed()).toMatchObject({ reason: 'revoked' })
  })

  test('starts no process and no sandbox', async () => {
    const sleeper = textIn(await ada.post('/api/sandboxes', { name: `napper-${newId()}` }), 'id')
    const session = textIn(await ada.post(`/api/sandboxes/${sleeper}/sessions`, CAT), 'id')
    await ada.post(`/api/sandboxes/${sleeper}/stop?discard=1`, {})
    expect(await refusal(openText(session))).toMatchObject([
      { reason: 'sandbox_stopped' },
      expect.any(String),
    ])
    expect(textIn(await ada.get(`/api/sandboxes/${sleeper}`), 'state')).toBe('stopped')
  })
})

describe('a cookie (threat T1)', () => {
  let cookie: string
  beforeAll(async () => {
    const jar = new CookieJar(control)
    const code = 'c'.repeat(32)
    control.host.codes.add(code)
    expect((await jar.write('POST', '/api/signin', { code })).status).toBe(204)
    cookie = [...jar.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  })
  const firstMessage = async (
    headers: readonly (readonly [string, string])[],
    path: string,
  ): Promise<string> => {
    const handshake = await upgrade(control, path, { headers: [['Cookie', cookie], ...headers] })
    if (handshake.kind !== 'open') return refusalOf(handshake)
    const frame = new TextDecoder().decode((await handshake.socket.nextFrame()).payload)
    handshake.socket.reset()
    return frame
  }
  const outcome = async (
    headers: readonly (readonly [string, string])[],
    path = '/ws/pty',
  ): Promise<string> => {
    const message = await firstMessage(headers, path)
    return message.startsWith('{') ? String(fieldOf(JSON.parse(message), 'type')) : message
  }
  const others = ['https://evil.example', 'null', '']

  test(
    'opens a terminal for a page of ours',
    async () => {
      expect(await outcome([['Origin', control.origin]])).toBe('session')
    },
    TIMEOUT_MS,
  )

  test('is refused from another origin and without an origin', async () => {
    expect(await outcome([])).toBe('403 origin_refused')
    expect(await outcome([['Sec-Fetch-Site', 'same-origin']])).toBe('403 origin_refused')
    for (const origin of [
      'https://evil.example',
      'null',
      `${control.origin}.evil.example`,
      `${control.origin}/`,
    ])
      expect(await outcome([['Origin', origin]])).toBe('403 origin_refused')
  })

  test('opens a text terminal of the account for a page of ours only', async () => {
    // The cookie is the local user's.
    const mine = new ApiClient(control, TOKEN)
    const own = textIn(await mine.post('/api/sandboxes', { name: `own-${newId()}` }), 'id')
    const session = textIn(await mine.post(`/api/sandboxes/${own}/sessions`, CAT), 'id')
    expect(await firstMessage([['Origin', control.origin]], `/terminal/${session}`)).toBe('\u001bc')
    expect(await outcome([], `/terminal/${session}`)).toBe('403 origin_refused')
    for (const origin of [...others, `${control.origin}.evil.example`])
      expect(await outcome([['Origin', origin]], `/terminal/${session}`)).toBe('403 origin_refused')
  })

  test('opens no other socket', async () => {
    expect(await outcome([['Origin', control.origin]], '/attach')).toBe('401 unauthorized')
  })
})

test(
  'session names are opaque and can be resumed where session tokens are off',
  async () => {
    await using places = new RealSandboxes(SHELL)
    await using other = await startControl({
      runner: places,
      config: {
        limits: UNLIMITED,
        sessions: { ptyReattachSeconds: 77, ptyHeartbeatSeconds: 5, idleSeconds: 600 },
      },
    })
    const target = {
      port: other.port,
      headers: { authorization: `Bearer ${TOKEN}`, host: `localhost:${other.port}` },
    }
    const before = new PtyClient(target, '/ws/pty')
    const name = await before.name()
    expect(name).toMatch(/^[0-9a-f-]{36}$/)
    before.type('echo kept\n')
    await before.waitForOutput('kept\r\n')
    const listed = await fetch(`${other.origin}/api/account/sessions`, { headers: target.headers })
    expect(fieldOf(await listed.json(), 'sessions')).toMatchObject([{ keepSeconds: 77 }])
    await before.disconnect()
    await using after = new PtyClient(target, `/ws/pty?session_id=${name}&resume=1`)
    expect((await after.first('history'))['data']).toContain('kept')
    await eventually(() => after.messages.length > 0, { what: 'a message' })
  },
  TIMEOUT_MS,
)
