import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, type RawWebSocket } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { CookieJar } from './support/cookie-jar.ts'
import { EndlessResponses } from './support/endless-responses.ts'
import { FakeIssuer, makeKey } from './support/fake-issuer.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { codeIn, linkIn, ApiClient, textIn, UNLIMITED } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'
import { shorten } from './support/shorten.ts'
import {
  REVOKED,
  attachAs,
  isOpen,
  makeSandbox,
  shareWith,
  startControlForUsers,
  startFakeSession,
  startSession,
  watch,
} from './support/sharing.ts'

/** Shorter than in production, so that the tests can wait for them. */
const hurryConfirmation = shorten(['CONFIRM_MS'], 300)
const hurryProvider = shorten(['DISCONNECT_ALL_AFTER_MS'], 800)
const hurry = (script: string): string => hurryProvider(hurryConfirmation(script))

/** Shares as a collaborator and returns the grant. */
function giveTo(owner: ApiClient, caller: ApiClient, request: object): Promise<string> {
  return shareWith(owner, caller, { role: 'collaborator', ...request })
}

/** The code of a refused attach. */
function refusalTo(control: RunningControl, caller: ApiClient, session: string): Promise<string> {
  return attachAs(control, caller, `/attach?session=${session}`)
}

describe('with the real sandboxd', () => {
  let sandboxes: RealSandboxes
  let control: RunningControl
  let owner: ApiClient
  let bob: ApiClient
  let sandbox: string
  let session: string
  beforeAll(async () => {
    sandboxes = new RealSandboxes()
    control = await startControlForUsers(sandboxes)
    owner = new ApiClient(control, TOKEN)
    bob = await ApiClient.named(control, 'bob')
    sandbox = await makeSandbox(owner, 'dev')
    session = await startSession(owner, 'dev')
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  })

  test('(threat T6) revoking a grant closes its connections permanently, and no others', async () => {
    const grant = await giveTo(owner, bob, { sandbox: 'dev' })
    await using guest = await watch(control, bob, session)
    await using own = await watch(control, owner, session)
    expect((await owner.delete(`/api/grants/${grant}`)).status).toBe(204)
    expect((await guest.closed).frame).toEqual(REVOKED)
    expect(await isOpen(own)).toBe(true)
    expect(await refusalTo(control, bob, session)).toBe('session_not_found')
  })

  test('(threat T6) revoking a grant ends the sessions that its holder started, if the owner asks for it', async () => {
    const runningOf = async (): Promise<string> =>
      JSON.stringify((await owner.get('/api/account/sessions')).body)
    const kept = await giveTo(owner, bob, { sandbox: 'dev' })
    const outlives = await startSession(bob, sandbox)
    expect((await owner.delete(`/api/grants/${kept}`)).status).toBe(204)
    const grant = await giveTo(owner, bob, { sandbox: 'dev' })
    const started = await startSession(bob, sandbox)
    expect((await owner.delete(`/api/grants/${grant}?endSessions=yes`)).status).toBe(400)
    expect((await owner.delete(`/api/grants/${grant}?endSessions=1`)).status).toBe(204)
    await eventually(async () => !(await runningOf()).includes(started), { what: 'its end' })
    const left = await runningOf()
    expect([left.includes(session), left.includes(outlives)]).toEqual([true, true])
  })

  test('(threat T6) revoking a grant ends pending requests', async () => {
    const grant = await giveTo(owner, bob, { sandbox: 'dev' })
    const running = async (): Promise<boolean> =>
      JSON.stringify((await owner.get('/api/account/sessions')).body).includes('sleep')
    const waiting = bob.post(`/api/sandboxes/${sandbox}/exec`, { cmd: 'sleep', args: ['3600'] })
    await eventually(running, { what: 'the process' })
    await owner.delete(`/api/grants/${grant}`)
    expect((await waiting).status).toBe(404)
    await eventually(async () => !(await running()), { what: 'the end of the process' })
  })

  test('(threat T6) an expired grant closes its connections', async () => {
    await giveTo(owner, bob, { sandbox: 'dev', expiresSeconds: 2 })
    await using guest = await watch(control, bob, session)
    expect((await guest.closed).frame).toEqual(REVOKED)
    expect(await refusalTo(control, bob, session)).toBe('session_not_found')
  })

  test('(threat T6) signing out closes the connections of the sign-in in every sandbox, and ends its token', async () => {
    const laptop = await ApiClient.named(control, 'ada', { jti: 'laptop' })
    const phone = await ApiClient.named(control, 'ada', { jti: 'phone' })
    await giveTo(owner, laptop, { sandbox: 'dev' })
    await makeSandbox(laptop, 'hers')
    const hers = await startSession(laptop, 'hers')
    await using one = await watch(control, laptop, session)
    await using two = await watch(control, laptop, hers)
    await using other = await watch(control, phone, session)
    expect((await laptop.post('/api/signout', undefined)).status).toBe(204)
    expect((await one.closed).frame).toEqual(REVOKED)
    expect((await two.closed).frame).toEqual(REVOKED)
    expect(await isOpen(other)).toBe(true)
    expect(codeIn(await laptop.get('/api/sandboxes'))).toBe('401 unauthorized')
    expect((await phone.get('/api/sandboxes')).status).toBe(200)
  })

  test('(threat T6) signing out with a token closes the connections of older tokens when the issuer names no sign-in', async () => {
    await using issuer = new FakeIssuer([await makeKey('k', 'ES256')])
    await using runner = new RealSandboxes()
    const issuers = [issuer.config({ algorithms: ['ES256'] })]
    await using served = await startControl({ runner, config: { limits: UNLIMITED, issuers } })
    const older = new ApiClient(served, await issuer.token({ jti: 'older' }))
    const newer = new ApiClient(served, await issuer.token({ jti: 'newer' }))
    await makeSandbox(older, 'hers')
    const hers = await startSession(older, 'hers')
    await using opened = await watch(served, older, hers)
    expect((await newer.post('/api/signout', undefined)).status).toBe(204)
    expect((await opened.closed).frame).toEqual(REVOKED)
    expect(codeIn(await newer.get('/api/sandboxes'))).toBe('401 unauthorized')
    // Another sign-in of the account may have refreshed it.
    await using again = await watch(served, older, hers)
    expect(await isOpen(again)).toBe(true)
  })

  test('(threat T6) accepts a new sign-in with the same id of the issuer', async () => {
    await using issuer = new FakeIssuer([await makeKey('k', 'ES256')])
    await using runner = new RealSandboxes()
    const issuers = [issuer.config({ algorithms: ['ES256'] })]
    await using served = await startControl({ runner, config: { limits: UNLIMITED, issuers } })
    const now = Math.floor(Date.now() / 1000)
    const of = async (iat: number): Promise<ApiClient> =>
      new ApiClient(served, await issuer.token({ sid: 'browser-1', jti: `at-${iat}`, iat }))
    const older = await of(now - 60)
    const newer = await of(now - 30)
    await makeSandbox(older, 'hers')
    const hers = await startSession(older, 'hers')
    await using opened = await watch(served, older, hers)
    expect((await newer.post('/api/signout', undefined)).status).toBe(204)
    expect((await opened.closed).frame).toEqual(REVOKED)
    for (const ended of [older, newer])
      expect(codeIn(await ended.get('/api/sandboxes'))).toBe('401 unauthorized')
    // As late as the clock of an issuer may be ahead, in place of waiting.
    const again = await of(now + 25)
    await using back = await watch(served, again, hers)
    expect(await isOpen(back)).toBe(true)
  })

  test('(threat T6) deleting an account closes all connections to its sandboxes, and its own everywhere', async () => {
    const carol = await ApiClient.named(control, 'carol')
    const again = await ApiClient.named(control, 'carol', { jti: 'another' })
    await giveTo(owner, carol, { sandbox: 'dev' })
    const hers = await makeSandbox(carol, 'hers')
    const inHers = await startSession(carol, 'hers')
    await giveTo(carol, bob, { sandbox: 'hers' })
    await using elsewhere = await watch(control, carol, session)
    await using home = await watch(control, carol, inHers)
    await using guest = await watch(control, bob, inHers)
    expect(codeIn(await carol.request('DELETE', '/api/account', { confirm: 'yes' }))).toBe('400 bad_request')
    expect(codeIn(await carol.request('DELETE', '/api/account', {}))).toBe('400 bad_request')
    expect(await isOpen(elsewhere)).toBe(true)
    const deleted = await carol.request('DELETE', '/api/account', { confirm: 'carol' })
    expect(deleted).toMatchObject({ status: 200, body: { left: 0 } })
    expect((await elsewhere.closed).frame).toEqual(REVOKED)
    for (const socket of [home, guest]) expect([4435, 1012]).toContain((await socket.closed).frame?.code ?? 0)
    expect(control.host.sandboxes.has(hers)).toBe(false)
    for (const caller of [carol, again])
      expect(codeIn(await caller.get('/api/sandboxes'))).toBe('401 unauthorized')
    expect(JSON.stringify((await owner.get(`/api/grants?sandbox=${sandbox}`)).body)).not.toContain('carol')
    expect(await refusalTo(control, bob, inHers)).toBe('session_not_found')
  })

  test('(threat T6) signing a browser out closes the connections of its tickets', async () => {
    const attach = async (jar: CookieJar): Promise<RawWebSocket> => {
      const ticket = String(
        fieldOf(await (await jar.write('POST', '/api/tickets', { session })).json(), 'ticket'),
      )
      const subprotocols = ['sandwire.v1', `sandwire.ticket.${ticket}`]
      const headers = [['Origin', control.origin]] as const
      const handshake = await upgrade(control, `/attach?session=${session}`, { subprotocols, headers })
      if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${refusalOf(handshake)}`)
      return handshake.socket
    }
    const signIn = async (code: string): Promise<CookieJar> => {
      const jar = new CookieJar(control)
      control.host.codes.add(code)
      expect((await jar.write('POST', '/api/signin', { code })).status).toBe(204)
      return jar
    }
    const first = await signIn('a'.repeat(32))
    const second = await signIn('b'.repeat(32))
    const third = await signIn('c'.repeat(32))
    await using one = await attach(first)
    await using two = await attach(second)
    await using three = await attach(third)
    expect((await first.write('POST', '/api/signout')).status).toBe(204)
    expect((await one.closed).frame).toEqual(REVOKED)
    const list: unknown = await (await second.read('/api/account/sign-ins')).json()
    const signIns = fieldOf(list, 'signIns') as { login: string; current: boolean }[]
    const current = signIns.find((each) => each.current)?.login ?? ''
    expect((await third.write('DELETE', `/api/account/sign-ins/${current}`)).status).toBe(204)
    expect((await two.closed).frame).toEqual(REVOKED)
    expect(await isOpen(three)).toBe(true)
  })

  test('(threat T6) a guest with several share links signs out of all of them, by token and by cookie', async () => {
    const linkFor = async (): Promise<string> => linkIn(await owner.post('/api/grants', { session }))
    const join = async (guest: ApiClient): Promise<ApiClient> => {
      const reply = await guest.post('/api/grants/redeem', { link: await linkFor() })
      return new ApiClient(control, textIn(reply, 'token'))
    }
    const first = await join(new ApiClient(control, undefined))
    await using one = await watch(control, first, session)
    const second = await join(first)
    await using two = await watch(control, second, session)
    const other = await join(new ApiClient(control, undefined))
    await using three = await watch(control, other, session)
    expect((await second.post('/api/signout', {})).status).toBe(204)
    expect((await one.closed).frame).toEqual(REVOKED)
    expect((await two.closed).frame).toEqual(REVOKED)
    for (const guest of [first, second])
      expect(codeIn(await guest.get('/api/whoami'))).toBe('401 unauthorized')
    expect((await other.get('/api/whoami')).status).toBe(200)
    expect(await isOpen(three)).toBe(true)

    const jar = new CookieJar(control)
    const earlier = new CookieJar(control)
    const redeem = async () =>
      (await jar.write('POST', '/api/grants/redeem', { link: await linkFor() })).status
    expect(await redeem()).toBe(200)
    for (const [name, value] of jar.cookies) earlier.cookies.set(name, value)
    expect(await redeem()).toBe(200)
    expect(jar.cookies).not.toEqual(earlier.cookies)
    expect(await earlier.statusOfWhoami()).toBe(200)
    expect((await jar.write('POST', '/api/signout')).status).toBe(204)
    expect(await earlier.statusOfWhoami()).toBe(401)
  })

  test('(threat T6) an operator deletes an account like its user would, and the audit names it', async () => {
    const dora = await ApiClient.named(control, 'dora')
    const account = textIn(await dora.get('/api/whoami'), 'account')
    await giveTo(owner, dora, { sandbox: 'dev' })
    await makeSandbox(dora, 'hers')
    const inHers = await startSession(dora, 'hers')
    await using elsewhere = await watch(control, dora, session)
    await using home = await watch(control, dora, inHers)
    const remove = (caller: ApiClient, id: string, confirm = id) =>
      caller.request('DELETE', `/api/accounts/${id}`, { confirm })
    expect(codeIn(await remove(dora, account))).toBe('403 forbidden')
    expect(codeIn(await remove(owner, account, 'yes'))).toBe('400 bad_request')
    expect(codeIn(await remove(owner, 'local'))).toBe('403 forbidden')
    const invented = `u${'0'.repeat(32)}`
    expect(codeIn(await remove(owner, invented))).toBe('404 not_found')
    expect(await isOpen(elsewhere)).toBe(true)
    expect(await remove(owner, account)).toMatchObject({ status: 200, body: { left: 0 } })
    expect((await elsewhere.closed).frame).toEqual(REVOKED)
    expect([4435, 1012]).toContain((await home.closed).frame?.code ?? 0)
    expect(codeIn(await dora.get('/api/sandboxes'))).toBe('401 unauthorized')
    const rows = JSON.stringify((await owner.get('/api/audit?action=account.remove')).body)
    expect(rows).toContain(`"account":"${account}"`)
  })

  test("deletes nothing of the machine's own user", async () => {
    expect(codeIn(await owner.request('DELETE', '/api/account', { confirm: 'local' }))).toBe('403 forbidden')
    expect((await owner.get('/api/sandboxes/dev')).status).toBe(200)
  })
})

describe('with a fake sandboxd', () => {
  let sandboxes: FakeSandboxes
  let control: RunningControl
  let owner: ApiClient
  let bob: ApiClient
  let sandbox: string
  let session: string
  beforeAll(async () => {
    sandboxes = new FakeSandboxes()
    control = await startControlForUsers(sandboxes, { alter: hurry })
    owner = new ApiClient(control, TOKEN)
    bob = await ApiClient.named(control, 'bob')
    ;({ session, sandbox } = await startFakeSession(control, 'dev'))
  })
  afterEach(() => {
    sandboxes.intercept = undefined
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  })

  const disconnects = (): number => control.host.count(`POST /sandboxes/${sandbox}/disconnect`)
  const closes = (): number => closings().length
  const closings = () => sandboxes.seen.filter(({ claims }) => claims.path === '/attachments/close')
  const isClose = (request: Request): boolean => new URL(request.url).pathname === '/attachments/close'
  const endless = new EndlessResponses()

  test.each([
    ['hangs', () => new Promise<Response>(() => undefined)],
    ['never ends its response', () => endless.respond()],
    ['sends a malformed confirmation', () => Response.json({ closed: 'all of them' })],
    ['refuses', () => Response.json({ error: { code: 'internal', message: '' } }, { status: 500 })],
  ] as const)(
    '(threat T6) the provider closes the connections of a sandbox whose sandboxd %s, and the request is retried until confirmed',
    async (_, answer) => {
      const grant = await giveTo(owner, bob, { sandbox: 'dev' })
      const before = disconnects()
      const confirmed = closes()
      sandboxes.intercept = (request) => (isClose(request) ? answer() : undefined)
      expect((await owner.delete(`/api/grants/${grant}`)).status).toBe(204)
      await eventually(() => disconnects() > before, {
        what: 'the provider to close the connections',
      })
      sandboxes.intercept = undefined
      await eventually(() => closes() > confirmed, { what: 'the confirmation' })
      expect(disconnects()).toBe(before + 1)
      await eventually(() => endless.open === 0, { what: 'the endless responses to be canceled' })
    },
  )

  test('(threat T6) closes an attach that reaches sandboxd after the revocation', async () => {
    const grant = await giveTo(owner, bob, { sandbox: 'dev' })
    const held = Promise.withResolvers<undefined>()
    const arrived = Promise.withResolvers<void>()
    sandboxes.intercept = (request) => {
      if (new URL(request.url).pathname !== '/attach') return undefined
      arrived.resolve()
      return held.promise
    }
    const before = closes()
    const attaching = refusalTo(control, bob, session)
    await arrived.promise
    expect((await owner.delete(`/api/grants/${grant}`)).status).toBe(204)
    expect(closes()).toBe(before + 1)
    held.resolve(undefined)
    expect(await attaching).toBe('session_not_found')
    expect(closes()).toBe(before + 2)
  })

  test('(threat T50) audits a process that was started after the revocation as started', async () => {
    const grant = await giveTo(owner, bob, { sandbox: 'dev' })
    const held = Promise.withResolvers<undefined>()
    const arrived = Promise.withResolvers<void>()
    sandboxes.intercept = (request) => {
      if (new URL(request.url).pathname !== '/attach') return undefined
      arrived.resolve()
      return held.promise
    }
    const path = `/attach?sandbox=${sandbox}&cmd=behind`
    const attaching = upgrade(control, path, { headers: bob.headers })
    await arrived.promise
    expect((await owner.delete(`/api/grants/${grant}`)).status).toBe(204)
    held.resolve(undefined)
    expect((await attaching).kind).toBe('refused')
    sandboxes.intercept = undefined
    const rows = async (): Promise<readonly unknown[]> => {
      const { body } = await owner.get('/api/audit?limit=1000&action=session.start')
      const all = fieldOf(body, 'rows') as readonly { command: string | null }[]
      return all.filter(({ command }) => command === 'behind')
    }
    await eventually(async () => (await rows()).length > 0, { what: 'the row' })
    expect(await rows()).toMatchObject([{ actorName: 'bob', outcome: 'allowed', code: null }])
  })

  test('(threat T6) closes an attach whose sign-in ended meanwhile', async () => {
    const ada = await ApiClient.named(control, 'ada')
    await giveTo(owner, ada, { sandbox: 'dev' })
    const held = Promise.withResolvers<undefined>()
    const arrived = Promise.withResolvers<void>()
    sandboxes.intercept = (request) => {
      if (new URL(request.url).pathname !== '/attach') return undefined
      arrived.resolve()
      return held.promise
    }
    const attaching = refusalTo(control, ada, session)
    await arrived.promise
    const beforeSignOut = closes()
    expect((await ada.post('/api/signout', undefined)).status).toBe(204)
    // The sign-out's own request is sent after its response.
    await eventually(() => closes() > beforeSignOut, { what: 'the request of the sign-out' })
    const before = closes()
    held.resolve(undefined)
    expect(await attaching).toBe('unauthorized')
    expect(closes()).toBe(before + 1)
  })

  test('sends sandboxd when a connection must authenticate again, except for the local user', async () => {
    const ada = await ApiClient.named(control, 'eve')
    await giveTo(owner, ada, { sandbox: 'dev' })
    const joined = async (caller: ApiClient): Promise<number | undefined> => {
      ;(await watch(control, caller, session)).reset()
      return sandboxes.seen.findLast(({ claims }) => claims.path.startsWith('/attach'))?.claims.reauthorizeMs
    }
    const minute = 60_000
    const until = async (caller: ApiClient): Promise<number> => ((await joined(caller)) ?? 0) - Date.now()
    expect(Math.abs((await until(ada)) - 15 * minute)).toBeLessThan(minute)
    const exp = Math.floor(Date.now() / 1_000) + 5 * 60
    expect(Math.abs((await until(await ApiClient.named(control, 'eve', { exp }))) - 6 * minute)).toBeLessThan(
      minute,
    )
    expect(await joined(owner)).toBeUndefined()
    await upgrade(control, `/attach?sandbox=${sandbox}&cmd=cat`, { headers: ada.headers })
    const plain = sandboxes.seen.findLast(({ claims }) => claims.path.startsWith('/attach'))?.claims
    // One hour plus the clock tolerance of one minute.
    expect(Math.abs((plain?.reauthorizeMs ?? 0) - Date.now() - 61 * 60_000)).toBeLessThan(60_000)
  })
})
