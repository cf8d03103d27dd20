import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ERRORS, type ErrorCode } from '@sandwire/protocol'
import { eventually, type RawHandshake } from '@sandwire/testing'
import { CLOCK_SKEW_MS } from '../src/auth/jwt.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { codeIn, ApiClient, textIn, UNLIMITED } from './support/api-client.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'
import { attachesTo, outcomeOf, socketOf, startControlForUsers, startFakeSession } from './support/sharing.ts'

let sandboxes: FakeSandboxes
let control: RunningControl
let owner: ApiClient
let session: string
let sandbox: string
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  control = await startControlForUsers(sandboxes)
  owner = new ApiClient(control, TOKEN)
  ;({ session, sandbox } = await startFakeSession(control, 'dev'))
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

const lastAttach = () => attachesTo(sandboxes).at(-1)

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

async function ticketFor(request: unknown, headers = {}, caller = owner): Promise<string> {
  const reply = await caller.request('POST', '/api/tickets', request, headers)
  expect(reply.status).toBe(201)
  return textIn(reply, 'ticket')
}

/** An upgrade whose only credential is a ticket. */
function use(
  ticket: string,
  path: string,
  {
    headers = [],
    offers = ['sandwire.v1'],
  }: { headers?: readonly (readonly [string, string])[]; offers?: readonly string[] } = {},
): Promise<RawHandshake> {
  return upgrade(control, path, { subprotocols: [...offers, `sandwire.ticket.${ticket}`], headers })
}

/** The outcome of an upgrade: `open`, or status and code of a refusal, over HTTP or in a frame. */
async function statusOf(handshake: RawHandshake): Promise<string> {
  const outcome = await outcomeOf(handshake)
  return outcome in ERRORS ? `${ERRORS[outcome as ErrorCode].status} ${outcome}` : outcome
}

describe('a ticket', () => {
  test('opens the socket it was issued for, and is not echoed', async () => {
    const ticket = await ticketFor({ sandbox: 'dev', session })
    expect(ticket.startsWith(`${sandbox}.`)).toBe(true)
    sandboxes.seen.length = 0
    await using socket = socketOf(await use(ticket, `/terminal/${session}`))
    expect(text((await socket.nextFrame()).payload)).toBe(`session ${session}`)
    expect(socket.response.headers.get('sec-websocket-protocol')).toBe('sandwire.v1')
    expect(JSON.stringify([...socket.response.headers])).not.toContain(ticket)
    const { claims, headers } = lastAttach() ?? {}
    expect(claims).toMatchObject({ identity: 'local', authority: 'driver' })
    expect(JSON.stringify([claims, headers])).not.toContain(ticket.split('.')[1] ?? '')
    expect(headers?.['sec-websocket-protocol']).toBe('sandwire.v1')
  })

  test('starts a process when issued for a sandbox', async () => {
    expect(await statusOf(await use(await ticketFor({ sandbox: 'dev' }), '/attach?cmd=cat'))).toBe('open')
    expect(await statusOf(await use(await ticketFor({ sandbox }), `/attach?sandbox=dev&cmd=cat`))).toBe(
      'open',
    )
  })

  test('is valid once', async () => {
    const ticket = await ticketFor({ session })
    expect(await statusOf(await use(ticket, `/terminal/${session}`))).toBe('open')
    expect(await statusOf(await use(ticket, `/terminal/${session}`))).toBe('401 unauthorized')
  })

  test('is valid once for a thousand concurrent requests', async () => {
    const ticket = await ticketFor({ session })
    const before = attachesTo(sandboxes).length
    const all = await Promise.all(Array.from({ length: 1_000 }, () => use(ticket, `/terminal/${session}`)))
    const kinds = Map.groupBy(await Promise.all(all.map(statusOf)), (outcome) => outcome)
    expect(kinds.get('open')).toHaveLength(1)
    const refused = [...kinds.keys()].filter((kind) => kind !== 'open')
    expect(refused.every((kind) => kind === '401 unauthorized' || kind === '429 rate_limited')).toBe(true)
    const after = attachesTo(sandboxes).length
    expect(after - before).toBe(1)
  })

  test('expires', async () => {
    await using other = await startControl({
      runner: sandboxes,
      config: { limits: UNLIMITED, ticketMs: 1 },
    })
    const caller = new ApiClient(other, TOKEN)
    const made = await caller.post('/api/sandboxes', { name: 'dev', start: false })
    expect(made.status).toBe(201)
    const reply = await caller.post('/api/tickets', { sandbox: 'dev' })
    const [ticket, expiresMs] = [textIn(reply, 'ticket'), Number(textIn(reply, 'expiresMs'))]
    await eventually(() => Date.now() > expiresMs, { what: 'the end of the ticket' })
    const offers = ['sandwire.v1', `sandwire.ticket.${ticket}`]
    const handshake = await upgrade(other, '/attach?cmd=cat', { subprotocols: offers, headers: [] })
    expect(refusalOf(handshake)).toBe('401 unauthorized')
  })

  test('lives at most 30 seconds, and no longer than its credential', async () => {
    const reply = await owner.post('/api/tickets', { session })
    expect(Number(textIn(reply, 'expiresMs'))).toBeLessThanOrEqual(Date.now() + 30_000)
    const exp = Math.floor((Date.now() - CLOCK_SKEW_MS) / 1000) + 15
    const caller = await ApiClient.named(control, 'brief', { exp })
    await caller.post('/api/sandboxes', { name: 'mine', start: false })
    const brief = await caller.post('/api/tickets', { sandbox: 'mine' })
    expect(Number(textIn(brief, 'expiresMs'))).toBeLessThanOrEqual(exp * 1000 + CLOCK_SKEW_MS)
  })

  test('opens nothing else: another sandbox, another session, a start, a join (threat T4)', async () => {
    const { session: other } = await startFakeSession(control, 'other')
    const { session: second } = await startFakeSession(control, 'dev')
    const forbidden = '403 forbidden'
    for (const [request, path] of [
      [{ session }, `/terminal/${other}`],
      [{ session }, `/terminal/${second}`],
      [{ session }, '/attach?sandbox=dev&cmd=cat'],
      [{ session }, '/attach?sandbox=other&cmd=cat'],
      [{ sandbox: 'dev' }, '/attach?sandbox=other&cmd=cat'],
      [{ sandbox: 'dev' }, `/terminal/${session}`],
      [{ sandbox: 'dev' }, `/attach?session=${other}`],
    ] as const) {
      const starts = sandboxes.sessions.size
      expect([path, await statusOf(await use(await ticketFor(request), path))]).toEqual([path, forbidden])
      expect(sandboxes.sessions.size).toBe(starts)
    }
    // A new name creates no sandbox, and a ticket for a session does not reveal which names exist.
    const ticket = await ticketFor({ sandbox: 'dev' })
    expect(await statusOf(await use(ticket, '/attach?sandbox=brand-new&cmd=cat'))).toBe(
      '404 sandbox_not_found',
    )
    expect((await owner.get('/api/sandboxes/brand-new')).status).toBe(404)
  })

  test('gives no more than the role it was issued for (threat T5)', async () => {
    const ticket = await ticketFor({ session, role: 'viewer' })
    expect(await statusOf(await use(ticket, `/terminal/${session}?role=driver`))).toBe('open')
    // The fake accepts every role; sandboxd enforces the authority in the token.
    expect(lastAttach()?.claims.authority).toBe('viewer')
  })

  test('is valid only for the origin that requested it, or for programs only (threat T1)', async () => {
    const [here, there] = [control.origin, `http://127.0.0.1:${control.port}`]
    for (const [requestedFrom, used, expected] of [
      [here, here, 'open'],
      [undefined, undefined, 'open'],
      [here, there, '401 unauthorized'],
      [here, undefined, '401 unauthorized'],
      [undefined, here, '401 unauthorized'],
    ] as const) {
      const ticket = await ticketFor(
        { session },
        requestedFrom === undefined ? {} : { origin: requestedFrom },
      )
      const headers = used === undefined ? [] : ([['Origin', used]] as const)
      expect([
        requestedFrom,
        used,
        await statusOf(await use(ticket, `/terminal/${session}`, { headers })),
      ]).toEqual([requestedFrom, used, expected])
    }
  })

  test('is refused beside another credential, and stays valid', async () => {
    const [one, two] = [await ticketFor({ session }), await ticketFor({ session })]
    const bearer = [['Authorization', `Bearer ${TOKEN}`]] as const
    const path = `/terminal/${session}`
    expect(await statusOf(await use(one, path, { headers: bearer }))).toBe('401 unauthorized')
    const offers = ['sandwire.v1', `sandwire.ticket.${two}`]
    expect(await statusOf(await use(one, path, { offers }))).toBe('401 unauthorized')
    for (const ticket of [one, two]) expect(await statusOf(await use(ticket, path))).toBe('open')
  })

  test('that was never issued calls no object', async () => {
    const objects = () => control.metric('sandwire_objects_constructed_total{class="sandbox"}')
    const before = await objects()
    for (const ticket of [
      `${'0'.repeat(32)}.${'a'.repeat(43)}`,
      'x',
      '',
      `${sandbox}`,
      `${sandbox}.${'a'.repeat(42)}`,
    ])
      expect(await statusOf(await use(ticket, `/terminal/${session}`))).toBe('401 unauthorized')
    expect(await objects()).toBe(before)
    expect(await statusOf(await use(`${sandbox}.${'a'.repeat(43)}`, `/terminal/${session}`))).toBe(
      '401 unauthorized',
    )
  })

  test('offered alone selects no subprotocol', async () => {
    const ticket = await ticketFor({ sandbox: 'dev' })
    expect(await statusOf(await use(ticket, '/attach?cmd=cat', { offers: [] }))).toBe(
      '426 version_unsupported',
    )
  })

  test('opens sockets only', async () => {
    const ticket = await ticketFor({ sandbox: 'dev' })
    const headers = { 'sec-websocket-protocol': `sandwire.v1, sandwire.ticket.${ticket}` }
    const anonymous = new ApiClient(control, undefined)
    for (const path of ['/api/sandboxes', `/api/sandboxes/${sandbox}`, `/logs/${sandbox}`, '/api/whoami'])
      expect(codeIn(await anonymous.request('GET', path, undefined, headers))).toBe('401 unauthorized')
    expect(codeIn(await anonymous.request('GET', '/metrics', undefined, headers))).toBe('403 forbidden')
  })

  test('is never logged', async () => {
    const ticket = await ticketFor({ session })
    await statusOf(await use(ticket, `/terminal/${session}`))
    await statusOf(await use(ticket, `/terminal/${session}`))
    const isLogged = (): boolean => control.log.some((line) => line.includes('"request_failed"'))
    await eventually(isLogged, { what: 'the refusal in the log' })
    expect(control.log.join('\n')).not.toContain(ticket.split('.')[1] ?? '')
  })

  test('is not issued without access, and the response reveals nothing (threat T4)', async () => {
    const eve = await ApiClient.named(control, 'eve')
    const missing = { sandbox: '0'.repeat(32), session: `${'0'.repeat(32)}.${'0'.repeat(26)}` }
    const requestTicket = async (request: unknown) => {
      const { status, body, headers } = await eve.post('/api/tickets', request)
      const error: unknown = fieldOf(body, 'error')
      const names = [...headers.keys()].toSorted()
      return {
        status,
        code: fieldOf(error, 'code'),
        message: fieldOf(error, 'message'),
        names,
      }
    }
    expect(await requestTicket({ sandbox })).toEqual(await requestTicket({ sandbox: missing.sandbox }))
    expect(await requestTicket({ session })).toEqual(await requestTicket({ session: missing.session }))
    expect((await requestTicket({ session })).status).toBe(404)
  })

  test('is limited in number', async () => {
    await startFakeSession(control, 'many')
    const request = { sandbox: 'many' }
    const all = await Promise.all(Array.from({ length: 110 }, () => owner.post('/api/tickets', request)))
    expect(all.filter(({ status }) => status === 201)).toHaveLength(100)
    expect(
      codeIn(all.find(({ status }) => status !== 201) ?? { status: 0, body: '', headers: new Headers() }),
    ).toBe('429 rate_limited')
  })

  test('is available to the owner and others, however many one account requests', async () => {
    const { session: many } = await startFakeSession(control, 'crowded')
    const give = async (name: string): Promise<ApiClient> => {
      const caller = await ApiClient.named(control, name)
      const account = textIn(await caller.get('/api/whoami'), 'account')
      expect((await owner.post('/api/grants', { session: many, account })).status).toBe(201)
      return caller
    }
    const [eve, ann] = [await give('eve-tickets'), await give('ann-tickets')]
    const ask = (caller: ApiClient) => caller.post('/api/tickets', { session: many })
    const all = await Promise.all(Array.from({ length: 105 }, () => ask(eve)))
    expect(all.filter(({ status }) => status === 201)).toHaveLength(20)
    const refused = all.find(({ status }) => status !== 201)
    expect(refused?.body).toMatchObject({ error: { code: 'rate_limited' } })
    // Until one of her tickets expires, which takes 30 seconds.
    const waitSeconds = Number(refused?.headers.get('retry-after'))
    expect(waitSeconds).toBeGreaterThan(15)
    expect(waitSeconds).toBeLessThanOrEqual(30)
    for (const caller of [owner, ann]) expect((await ask(caller)).status).toBe(201)
  })

  test('is requested in one format only', async () => {
    for (const request of [{}, { sandbox: 'dev', role: 'owner' }, { session: 'x' }, { sandbox, extra: 1 }])
      expect(codeIn(await owner.post('/api/tickets', request))).toBe('400 bad_request')
    const { session: other } = await startFakeSession(control, 'other')
    expect(codeIn(await owner.post('/api/tickets', { sandbox: 'dev', session: other }))).toBe(
      '404 session_not_found',
    )
  })
})
