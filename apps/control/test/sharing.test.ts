import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, openRawTcp } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { CookieJar } from './support/cookie-jar.ts'
import { upgrade } from './support/handshake.ts'
import {
  codeIn,
  JWT_SECRET,
  linkIn,
  ApiClient,
  textIn,
  type ApiResponse,
  UNLIMITED,
} from './support/api-client.ts'
import { factsOf, FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'
import {
  attachAs,
  attachesTo,
  firstText,
  shareWith,
  startControlForUsers,
  startFakeSession,
} from './support/sharing.ts'

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

async function share(request: object): Promise<ApiResponse> {
  const response = await owner.post('/api/grants', { sandbox: 'dev', ...request })
  expect(response.status).toBe(201)
  return response
}

/** Shares the sandbox or a session with a signed-in account and returns the grant. */
function giveTo(caller: ApiClient, request: object): Promise<string> {
  return shareWith(owner, caller, { sandbox: 'dev', ...request })
}

function listIn({ body }: ApiResponse, name: string): readonly unknown[] {
  const list: unknown = fieldOf(body, name)
  return Array.isArray(list) ? list : []
}

describe('a grant', () => {
  test('is for a viewer and a week by default, and its share link is shown once', async () => {
    const response = await share({ label: 'demo' })
    const { body } = response
    expect(body).toMatchObject({ role: 'viewer', session: null, sandbox })
    expect(body).not.toHaveProperty('notice')
    const week = 7 * 24 * 60 * 60_000
    expect(Math.abs(Number(textIn(response, 'expiresMs')) - Date.now() - week)).toBeLessThan(60_000)
    expect(textIn(response, 'link').startsWith(`${control.origin}/join#${textIn(response, 'grant')}.`)).toBe(
      true,
    )
    const listed = await owner.get('/api/grants?sandbox=dev')
    expect(JSON.stringify(listed.body)).toContain('demo')
    expect(JSON.stringify(listed.body)).not.toContain(linkIn(response).split('.')[2] ?? '')
  })

  test('for a collaborator says that it includes every file', async () => {
    expect(textIn(await share({ role: 'collaborator' }), 'notice')).toContain('every file')
    expect(textIn(await share({ session, role: 'collaborator' }), 'notice')).toContain('every file')
  })

  test('on a session needs an existing session and no sandbox name', async () => {
    const response = await owner.post('/api/grants', { session })
    expect(response.body).toMatchObject({ session, sandbox, role: 'viewer' })
    const gone = `${sandbox}.${'0'.repeat(26)}`
    expect(codeIn(await owner.post('/api/grants', { session: gone }))).toBe('404 session_not_found')
  })

  test.each([
    {},
    { sandbox: 'dev', role: 'driver' },
    { sandbox: 'dev', role: 'owner' },
    { sandbox: 'dev', expiresSeconds: 0 },
    { sandbox: 'dev', expiresSeconds: 90 * 24 * 60 * 60 + 1 },
    { sandbox: 'dev', expiresSeconds: '60' },
    { sandbox: 'dev', label: 'a\nb' },
    { sandbox: 'dev', label: '\u202e' },
    { sandbox: 'dev', label: 'x'.repeat(81) },
    { sandbox: 'dev', account: 'unknown' },
    { sandbox: 'dev', account: `u${'0'.repeat(32)}` },
    { sandbox: 'dev', account: 'local' },
    { sandbox: 'dev', __proto__x: 1 },
  ])('is refused for %j', async (request) => {
    expect(codeIn(await owner.post('/api/grants', request))).toBe('400 bad_request')
  })

  test('can be created for a known account, without a share link', async () => {
    const ann = await ApiClient.named(control, 'ann')
    const account = textIn(await ann.get('/api/whoami'), 'account')
    const response = await share({ account })
    expect(response.body).not.toHaveProperty('link')
    expect(listIn(await ann.get('/api/account/grants'), 'grants')).toMatchObject([
      {
        grant: textIn(response, 'grant'),
        sandbox,
        sandboxName: 'dev',
        session: null,
        role: 'viewer',
        owner: 'owner',
      },
    ])
    expect((await ann.get(`/api/sandboxes/${sandbox}`)).status).toBe(200)
  })

  test('can be created by owners only, and reveals nothing to others (threat T4)', async () => {
    const vera = await ApiClient.named(control, 'vera')
    await giveTo(vera, { role: 'collaborator' })
    expect(codeIn(await vera.post('/api/grants', { sandbox }))).toBe('403 forbidden')
    expect(codeIn(await vera.get(`/api/grants?sandbox=${sandbox}`))).toBe('403 forbidden')
    const grant = textIn(await share({}), 'grant')
    expect(codeIn(await vera.delete(`/api/grants/${grant}`))).toBe('403 forbidden')

    const eve = await ApiClient.named(control, 'eve')
    const missing = '0'.repeat(32)
    const same = async (method: string, route: (id: string) => string, body?: (id: string) => unknown) => {
      const seen = async (id: string) => {
        const { status, body: response, headers } = await eve.request(method, route(id), body?.(id))
        return {
          status,
          response: JSON.stringify(response).replace(/"request_id":"[^"]*"/, ''),
          names: [...headers.keys()],
        }
      }
      const [real, invented] = [await seen(sandbox), await seen(missing)]
      expect(real).toEqual(invented)
      expect(real.status).toBe(404)
    }
    await same(
      'POST',
      () => '/api/grants',
      (id) => ({ sandbox: id }),
    )
    await same(
      'POST',
      () => '/api/grants',
      (id) => ({ session: `${id}.${session.split('.')[1] ?? ''}` }),
    )
    await same('GET', (id) => `/api/grants?sandbox=${id}`)
    await same('DELETE', (id) => `/api/grants/${id}.${grant.split('.')[1] ?? ''}`)
    await same('GET', (id) => `/api/sandboxes/${id}`)
    await same('GET', (id) => `/api/account/sessions/${id}.${session.split('.')[1] ?? ''}`)
    expect((await owner.get('/api/grants?sandbox=dev')).body).not.toMatchObject({ grants: [] })
  })

  test('needs a credential with the scope for it', async () => {
    const ann = await ApiClient.named(control, 'weak', { scope: 'sandbox:connect sandbox:exec' })
    expect(codeIn(await ann.post('/api/grants', { sandbox: 'dev' }))).toBe('403 forbidden')
  })

  test('is limited in number', async () => {
    await startFakeSession(control, 'popular')
    const ask = () => owner.post('/api/grants', { sandbox: 'popular' })
    const all = await Promise.all(Array.from({ length: 70 }, ask))
    expect(all.filter(({ status }) => status === 201)).toHaveLength(64)
    expect(codeIn(await ask())).toBe('429 too_many_grants')
    const [first] = listIn(await owner.get('/api/grants?sandbox=popular'), 'grants')
    expect((await owner.delete(`/api/grants/${String(fieldOf(first, 'grant'))}`)).status).toBe(204)
    expect((await ask()).status).toBe(201)
  })
})

describe('a share link', () => {
  test('is redeemed by one of fifty concurrent accounts, which may repeat it', async () => {
    const link = linkIn(await share({}))
    const accounts = await Promise.all(
      Array.from({ length: 50 }, (_, at) => ApiClient.named(control, `p${at}`)),
    )
    const all = await Promise.all(accounts.map((caller) => caller.post('/api/grants/redeem', { link })))
    const winners = all.flatMap(({ status }, at) => (status === 200 ? [at] : []))
    expect(winners).toHaveLength(1)
    const losers = new Set(all.filter(({ status }) => status !== 200).map(codeIn))
    expect([...losers]).toEqual(['410 link_spent'])
    const [winner = 0] = winners
    const again = await accounts[winner]?.post('/api/grants/redeem', { link })
    expect(again?.body).toEqual(all[winner]?.body)
  })

  test('is not used up by the owner', async () => {
    const link = linkIn(await share({}))
    const response = await owner.post('/api/grants/redeem', { link })
    expect(codeIn(response)).toBe('403 forbidden')
    const ann = await ApiClient.named(control, 'ann-2')
    expect((await ann.post('/api/grants/redeem', { link })).status).toBe(200)
  })

  test('that was revoked, has a wrong secret or never existed is refused', async () => {
    const ann = await ApiClient.named(control, 'ann-3')
    const response = await share({})
    const [id = '', random = ''] = linkIn(response).split('.')
    const wrong = 'x'.repeat(43)
    const objects = () => control.metric('sandwire_objects_constructed_total{class="sandbox"}')
    const before = await objects()
    for (const link of [
      `${id}.${random}.${wrong}`,
      `${id}.${'0'.repeat(20)}.${wrong}`,
      `${'0'.repeat(32)}.${random}.${wrong}`,
    ])
      expect(codeIn(await ann.post('/api/grants/redeem', { link }))).toBe('410 link_spent')
    expect(await objects()).toBe(before)
    expect((await owner.delete(`/api/grants/${textIn(response, 'grant')}`)).status).toBe(204)
    expect(codeIn(await ann.post('/api/grants/redeem', { link: linkIn(response) }))).toBe('410 link_spent')
    expect(codeIn(await ann.post('/api/grants/redeem', { link: 'x' }))).toBe('400 bad_request')
    expect(codeIn(await owner.delete(`/api/grants/${textIn(response, 'grant')}`))).toBe('404 not_found')
  })

  test('expires', async () => {
    const response = await share({ expiresSeconds: 1 })
    const ann = await ApiClient.named(control, 'ann-4')
    await eventually(() => Date.now() > Number(textIn(response, 'expiresMs')), {
      what: 'the end of the grant',
    })
    expect(codeIn(await ann.post('/api/grants/redeem', { link: linkIn(response) }))).toBe('410 link_spent')
  })

  test('is never logged', async () => {
    const response = await share({})
    const secret = linkIn(response).split('.')[2] ?? ''
    const ann = await ApiClient.named(control, 'ann-5')
    await ann.post('/api/grants/redeem', { link: linkIn(response) })
    await ann.post('/api/grants/redeem', { link: `${linkIn(response).slice(0, -1)}_` })
    expect(control.log.join('\n')).not.toContain(secret)
  })
})

describe('a held grant', () => {
  test('is in the lists of its holder, marked, until it is revoked', async () => {
    const bob = await ApiClient.named(control, 'bob')
    expect((await bob.post('/api/sandboxes', { name: 'own', start: false })).status).toBe(201)
    const grant = await giveTo(bob, { role: 'collaborator' })
    sandboxes.activity = { attachments: 0, exits: [], sessions: [factsOf(session)] }
    expect(listIn(await bob.get('/api/sandboxes'), 'sandboxes')).toMatchObject([
      { name: 'own', access: 'owner' },
      { id: sandbox, name: 'dev', access: 'collaborator', owner: 'owner' },
    ])
    expect(listIn(await bob.get('/api/account/sessions'), 'sessions')).toMatchObject([
      { id: session, sandbox, access: 'collaborator', owner: 'owner' },
    ])
    expect((await bob.get(`/api/sandboxes/${sandbox}`)).body).toMatchObject({ access: 'collaborator' })
    expect((await owner.get('/api/sandboxes/dev')).body).toMatchObject({ access: 'owner' })
    const listed = listIn(await owner.get('/api/grants?sandbox=dev'), 'grants')
    expect(listed).toContainEqual(expect.objectContaining({ grant, state: 'held', name: 'bob' }))

    expect((await owner.delete(`/api/grants/${grant}`)).status).toBe(204)
    expect(listIn(await bob.get('/api/sandboxes'), 'sandboxes')).toHaveLength(1)
    expect(listIn(await bob.get('/api/account/sessions'), 'sessions')).toEqual([])
    expect(listIn(await bob.get('/api/account/grants'), 'grants')).toEqual([])
    expect(codeIn(await bob.get(`/api/sandboxes/${sandbox}`))).toBe('404 sandbox_not_found')
    expect(await attachAs(control, bob, `/terminal/${session}`)).toBe('session_not_found')
  })

  test('is removed with the sandbox', async () => {
    const bob = await ApiClient.named(control, 'bob-2')
    await startFakeSession(control, 'brief')
    const made = await owner.post('/api/grants', { sandbox: 'brief' })
    await bob.post('/api/grants/redeem', { link: linkIn(made) })
    expect(listIn(await bob.get('/api/account/grants'), 'grants')).toHaveLength(1)
    expect((await owner.delete('/api/sandboxes/brief')).status).toBe(204)
    expect(listIn(await bob.get('/api/account/grants'), 'grants')).toEqual([])
  })

  test('lets a collaborator work and a viewer watch (threat T4)', async () => {
    const [carl, vera] = [await ApiClient.named(control, 'carl'), await ApiClient.named(control, 'vera-2')]
    await giveTo(carl, { role: 'collaborator' })
    await giveTo(vera, {})
    expect(await attachAs(control, carl, `/attach?sandbox=${sandbox}&cmd=cat`)).toBe('open')
    expect(lastAttach()?.claims).toMatchObject({ authority: 'driver', name: 'carl', exec: true })
    expect(await attachAs(control, carl, `/terminal/${session}`)).toBe('open')
    expect(lastAttach()?.claims).toMatchObject({ authority: 'driver', usualRole: 'collaborator' })
    expect(await attachAs(control, carl, `/terminal/${session}?role=driver`)).toBe('open')
    expect(lastAttach()?.claims).toMatchObject({ authority: 'driver' })
    expect(await attachAs(control, vera, `/attach?sandbox=${sandbox}&cmd=cat`)).toBe('forbidden')
    expect(await attachAs(control, vera, `/terminal/${session}`)).toBe('open')
    expect(lastAttach()?.claims).toMatchObject({ authority: 'viewer', exec: false })
    for (const caller of [carl, vera]) {
      expect(codeIn(await caller.post(`/api/sandboxes/${sandbox}/stop`, {}))).toBe('403 forbidden')
      expect(codeIn(await caller.delete(`/api/sandboxes/${sandbox}`))).toBe('403 forbidden')
    }
    expect(codeIn(await vera.post(`/api/sandboxes/${sandbox}/exec`, { cmd: 'id' }))).toBe('403 forbidden')
  })

  test('on one session hides the sandbox and its other sessions (threat T4)', async () => {
    const other = (await startFakeSession(control, 'dev')).session
    const sue = await ApiClient.named(control, 'sue')
    await giveTo(sue, { session })
    expect(await attachAs(control, sue, `/terminal/${session}`)).toBe('open')
    expect(lastAttach()?.claims).toMatchObject({ authority: 'viewer', exec: false })
    expect((await sue.get(`/api/account/sessions/${session}`)).status).toBe(200)
    expect(await attachAs(control, sue, `/terminal/${other}`)).toBe('session_not_found')
    expect(codeIn(await sue.get(`/api/account/sessions/${other}`))).toBe('404 session_not_found')
    expect(codeIn(await sue.get(`/api/sandboxes/${sandbox}`))).toBe('404 sandbox_not_found')
    expect(codeIn(await sue.get(`/logs/${sandbox}`))).toBe('404 sandbox_not_found')
    expect(await attachAs(control, sue, `/attach?sandbox=${sandbox}&cmd=cat`)).toBe('sandbox_not_found')
    expect(codeIn(await sue.post('/api/tickets', { session: other }))).toBe('404 session_not_found')
    expect(codeIn(await sue.post('/api/tickets', { sandbox }))).toBe('404 sandbox_not_found')
    expect(listIn(await sue.get('/api/sandboxes'), 'sandboxes')).toEqual([])
    expect(listIn(await sue.get('/api/account/sessions'), 'sessions')).toMatchObject([
      { id: session, access: 'viewer', owner: 'owner' },
    ])
    expect(listIn(await sue.get('/api/account/grants'), 'grants')[0]).not.toHaveProperty('sandboxName')
  })
})

describe('a guest of this machine', () => {
  const anonymous = () => new ApiClient(control, undefined)

  test('that is a program gets a token, valid for what was shared only', async () => {
    const made = await share({ role: 'collaborator' })
    const response = await anonymous().post('/api/grants/redeem', { link: linkIn(made), name: 'Gus' })
    expect(response.body).toMatchObject({ sandbox, role: 'collaborator', owner: 'owner' })
    expect(response.headers.get('set-cookie')).toBeNull()
    const guest = new ApiClient(control, textIn(response, 'token'))
    const who = await guest.get('/api/whoami')
    expect(who.body).toMatchObject({ name: 'Gus (guest)', scopes: ['connect', 'exec'] })
    const list = await guest.get('/api/account/sign-ins')
    expect(list.body).toMatchObject({ signIns: [{ name: 'Gus (guest)', current: true }] })
    expect(textIn(who, 'expiresMs')).toBe(textIn(response, 'expiresMs'))
    expect(await attachAs(control, guest, `/attach?sandbox=${sandbox}&cmd=cat`)).toBe('open')
    expect(lastAttach()?.claims).toMatchObject({ name: 'Gus (guest)', authority: 'driver' })
    // Guests create no sandbox, by name or with an attach.
    expect(codeIn(await guest.post('/api/sandboxes', { name: 'mine' }))).toBe('403 forbidden')
    expect(await attachAs(control, guest, '/attach?sandbox=mine&cmd=cat')).toBe('forbidden')
    expect(await attachAs(control, guest, '/attach?cmd=cat')).toBe('forbidden')
    expect((await owner.delete(`/api/grants/${textIn(made, 'grant')}`)).status).toBe(204)
    expect(codeIn(await guest.get('/api/whoami'))).toBe('401 unauthorized')
  })

  test('that uses the name of a shared sandbox gets its id, and nothing about others (threat T4)', async () => {
    const made = await share({ role: 'collaborator' })
    const response = await anonymous().post('/api/grants/redeem', { link: linkIn(made), name: 'Gus' })
    const guest = new ApiClient(control, textIn(response, 'token'))
    const hint = `of that name are shared with you, use an id: ${sandbox} of "owner"`
    const refused = await guest.get('/api/sandboxes/dev')
    expect(codeIn(refused)).toBe('404 sandbox_not_found')
    expect(JSON.stringify(refused.body)).toContain(JSON.stringify(hint).slice(1, -1))
    const { headers } = guest
    const attached = await upgrade(control, '/attach?sandbox=dev&cmd=cat', {
      subprotocols: ['sandwire.v1'],
      headers,
    })
    expect(JSON.parse(await firstText(attached))).toMatchObject({
      code: 'sandbox_not_found',
      message: `You have no sandbox "dev"; sandboxes ${hint}`,
    })
    await owner.post('/api/sandboxes', { name: 'unshared', start: false })
    const notShared = await guest.get('/api/sandboxes/unshared')
    const notThere = await guest.get('/api/sandboxes/not-there')
    const saying = ({ body }: ApiResponse): string => textIn({ body: fieldOf(body, 'error') }, 'message')
    expect(saying(notShared)).toBe(saying(notThere))
    expect(saying(notShared)).toBe('No sandbox has this id or name')
    await owner.delete(`/api/grants/${textIn(made, 'grant')}`)
  })

  test('with one session does not get the name of the sandbox, nor after losing access (threat T4)', async () => {
    const zoe = await ApiClient.named(control, 'zoe')
    await giveTo(zoe, { session })
    const said = async (): Promise<string> => JSON.stringify((await zoe.get('/api/sandboxes/dev')).body)
    expect(await said()).not.toContain(sandbox)
    const grant = await giveTo(zoe, {})
    expect(await said()).toContain(sandbox)
    await owner.delete(`/api/grants/${grant}`)
    expect(await said()).not.toContain(sandbox)
  })

  test('keeps the names of shared sandboxes free for their own (threat T4)', async () => {
    const yan = await ApiClient.named(control, 'yan')
    await giveTo(yan, { role: 'collaborator' })
    expect(await attachAs(control, yan, '/attach?sandbox=dev&cmd=cat')).toBe('open')
    const own = textIn(await yan.get('/api/sandboxes/dev'), 'id')
    expect(own).not.toBe(sandbox)
    expect(lastAttach()?.claims.sandbox).toBe(own)
  })

  test('that is a viewer may only watch', async () => {
    const response = await anonymous().post('/api/grants/redeem', { link: linkIn(await share({ session })) })
    const guest = new ApiClient(control, textIn(response, 'token'))
    expect((await guest.get('/api/whoami')).body).toMatchObject({ name: 'guest', scopes: ['connect'] })
    expect(await attachAs(control, guest, `/terminal/${session}`)).toBe('open')
    expect(await attachAs(control, guest, `/attach?sandbox=${sandbox}&cmd=cat`)).toBe('forbidden')
  })

  test('that is a browser gets a cookie, from our own page only', async () => {
    const link = linkIn(await share({ session }))
    const join = (headers: Record<string, string>) =>
      anonymous().request('POST', '/api/grants/redeem', { link, name: 'Gus' }, headers)
    expect(codeIn(await join({ origin: 'https://evil.example' }))).toBe('403 origin_refused')
    expect(codeIn(await join({ 'sec-fetch-site': 'cross-site' }))).toBe('403 origin_refused')
    const response = await join({ origin: control.origin })
    expect(response.body).not.toHaveProperty('token')
    const cookie = response.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^__Host-sandwire=sws_u\w+\.[\w-]{43}; .*HttpOnly; Secure; SameSite=Strict$/)
    const headers = { cookie: cookie.split(';')[0] ?? '', origin: control.origin }
    expect((await anonymous().request('GET', '/api/whoami', undefined, headers)).body).toMatchObject({
      name: 'Gus (guest)',
    })
    const ticket = textIn(await anonymous().request('POST', '/api/tickets', { session }, headers), 'ticket')
    const handshake = await upgrade(control, `/terminal/${session}`, {
      subprotocols: ['sandwire.v1', `sandwire.ticket.${ticket}`],
      headers: [['Origin', control.origin]],
    })
    expect(await firstText(handshake)).toBe(`session ${session}`)
  })

  test('gets a refusal without its body being read (threat T22)', async () => {
    const response = await anonymous().post('/api/grants/redeem', {
      link: linkIn(await share({ session })),
      name: 'Gus',
    })
    await using tcp = await openRawTcp({ port: control.port })
    await tcp.write(
      `POST /api/sandboxes HTTP/1.1\r\nHost: localhost:${control.port}\r\nAuthorization: Bearer ${textIn(response, 'token')}\r\n` +
        `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n${'a'.repeat(100_000)}\r\n`,
    )
    expect(new TextDecoder().decode(await tcp.read())).toStartWith('HTTP/1.1 403 Forbidden')
  })

  test('keeps earlier grants when redeeming another share link', async () => {
    const first = await anonymous().post('/api/grants/redeem', {
      link: linkIn(await share({ session })),
      name: 'Gus',
    })
    const guest = new ApiClient(control, textIn(first, 'token'))
    const made = await share({ role: 'collaborator' })
    const second = await guest.post('/api/grants/redeem', { link: linkIn(made) })
    const more = new ApiClient(control, textIn(second, 'token'))
    expect((await more.get('/api/whoami')).body).toMatchObject({
      name: 'Gus (guest)',
      scopes: ['connect', 'exec'],
    })
    expect(listIn(await more.get('/api/account/grants'), 'grants')).toHaveLength(2)
    await owner.delete(`/api/grants/${textIn(made, 'grant')}`)
    expect(listIn(await more.get('/api/account/grants'), 'grants')).toHaveLength(1)
  })

  test('is marked as a guest wherever others see the name, and other users are not', async () => {
    const made = await share({ role: 'collaborator' })
    const response = await anonymous().post('/api/grants/redeem', { link: linkIn(made), name: 'owner' })
    const guest = new ApiClient(control, textIn(response, 'token'))
    expect((await guest.get('/api/whoami')).body).toMatchObject({ name: 'owner (guest)' })
    expect((await owner.get('/api/whoami')).body).toMatchObject({ name: 'owner' })
    expect(await attachAs(control, guest, `/terminal/${session}`)).toBe('open')
    expect(lastAttach()?.claims).toMatchObject({ name: 'owner (guest)' })
    const grants = listIn(await owner.get('/api/grants?sandbox=dev'), 'grants')
    expect(grants).toContainEqual(
      expect.objectContaining({ grant: textIn(made, 'grant'), name: 'owner (guest)' }),
    )
    const account = textIn(await guest.get('/api/whoami'), 'account')
    await eventually(
      async () => {
        const rows = listIn(await owner.get('/api/audit?action=grant.redeem'), 'rows')
        return rows.some((row) => fieldOf(row, 'actor') === account)
      },
      { what: 'the row' },
    )
    const rows = listIn(await owner.get('/api/audit?limit=200'), 'rows')
    const theirs = rows.filter((row) => fieldOf(row, 'actor') === account)
    expect(new Set(theirs.map((row) => String(fieldOf(row, 'actorName'))))).toEqual(
      new Set(['owner (guest)']),
    )
  })

  test('has a name whose mark fits where names are shown', async () => {
    const link = linkIn(await share({ session }))
    const name = '\u{1F600}'.repeat(28)
    expect(codeIn(await anonymous().post('/api/grants/redeem', { link, name: `${name}x` }))).toBe(
      '400 bad_request',
    )
    const response = await anonymous().post('/api/grants/redeem', { link, name })
    const who = await new ApiClient(control, textIn(response, 'token')).get('/api/whoami')
    expect(textIn(who, 'name')).toBe(`${name} (guest)`)
    expect(textIn(who, 'name')).toHaveLength(64)
  })

  test.each([
    [`owner${'\u3164'.repeat(40)}x`, 'owner x (guest)'],
    [`owner${'\u2800'.repeat(40)}x`, 'owner x (guest)'],
    ['o\u034fw\u115fner\u00a0\u3000 x', 'ow ner x (guest)'],
    [`a${'\u0301'.repeat(40)}b`, 'á\u0301\u0301\u0301b (guest)'],
    ['ｏｗｎｅｒ', 'owner (guest)'],
    ['\u2800\u3164', 'guest'],
  ])('cannot hide its mark behind invisible characters: %j', async (name, shown) => {
    const link = linkIn(await share({ session }))
    const response = await anonymous().post('/api/grants/redeem', { link, name })
    const who = await new ApiClient(control, textIn(response, 'token')).get('/api/whoami')
    expect(textIn(who, 'name')).toBe(shown)
  })

  test('with a sign-in that ended is a new guest', async () => {
    const headers = { cookie: `__Host-sandwire=sws_local.${'x'.repeat(43)}`, origin: control.origin }
    const link = linkIn(await share({}))
    expect((await anonymous().request('POST', '/api/grants/redeem', { link }, headers)).status).toBe(200)
  })

  test('without a share link, with a used one or with a wrong token is refused', async () => {
    const link = linkIn(await share({}))
    expect((await anonymous().post('/api/grants/redeem', { link })).status).toBe(200)
    expect(codeIn(await anonymous().post('/api/grants/redeem', { link }))).toBe('410 link_spent')
    const accounts = () => control.metric('sandwire_objects_constructed_total{class="account"}')
    const before = await accounts()
    for (const token of [
      `swg_u${'0'.repeat(32)}.${'x'.repeat(43)}`,
      'swg_',
      'swg_local',
      `swg_x.${'x'.repeat(43)}`,
    ])
      expect(codeIn(await new ApiClient(control, token).get('/api/whoami'))).toBe('401 unauthorized')
    expect(await accounts()).toBe(before)
    expect(codeIn(await new ApiClient(control, `swg_local.${'x'.repeat(43)}`).get('/api/whoami'))).toBe(
      '401 unauthorized',
    )
  })
})

const ISSUER = {
  id: 'test',
  name: 'Test',
  issuer: 'http://127.0.0.1:1/',
  audiences: ['us'],
  algorithms: ['RS256'],
  defaultScopes: [],
  requestScopes: [],
  bearer: 'access_token',
  endpoints: {},
}

describe('guests are refused', () => {
  test.each([
    ['with a configured issuer', { issuers: [ISSUER] }],
    ['on a server that other machines reach', { mode: 'open' }],
  ])('%s', async (_, config) => {
    const bindings = { JWT_SECRET }
    await using other = await startControl({
      runner: sandboxes,
      config: { limits: UNLIMITED, ...config },
      bindings,
    })
    const admin = new ApiClient(other, TOKEN)
    expect((await admin.post('/api/sandboxes', { name: 'dev', start: false })).status).toBe(201)
    const link = linkIn(await admin.post('/api/grants', { sandbox: 'dev' }))
    const response = await new ApiClient(other, undefined).post('/api/grants/redeem', { link })
    expect(codeIn(response)).toBe('401 unauthorized')
  })
})

describe('guests from before an issuer was configured', () => {
  test('are no longer authenticated, by token or by cookie, and cannot redeem share links', async () => {
    const config = { limits: UNLIMITED }
    const bindings = { JWT_SECRET }
    await using other = await startControl({ runner: sandboxes, config, bindings })
    const admin = new ApiClient(other, TOKEN)
    const anonymous = new ApiClient(other, undefined)
    expect((await admin.post('/api/sandboxes', { name: 'dev', start: false })).status).toBe(201)
    const link = async () => linkIn(await admin.post('/api/grants', { sandbox: 'dev' }))
    const program = await anonymous.post('/api/grants/redeem', { link: await link() })
    const guest = new ApiClient(other, textIn(program, 'token'))
    const jar = new CookieJar(other)
    expect((await jar.write('POST', '/api/grants/redeem', { link: await link() })).status).toBe(200)
    expect([(await guest.get('/api/whoami')).status, await jar.statusOfWhoami()]).toEqual([200, 200])

    await other.restart({ ...config, issuers: [ISSUER] })
    expect((await admin.get('/api/sandboxes/dev')).status).toBe(200)
    expect([(await guest.get('/api/whoami')).status, await jar.statusOfWhoami()]).toEqual([401, 401])
    expect(codeIn(await guest.post('/api/grants/redeem', { link: await link() }))).toBe('401 unauthorized')
    const more = await jar.write('POST', '/api/grants/redeem', { link: await link() })
    expect(more.status).toBe(401)
  })
})

test('the page of share links has a strict policy and no content of its own', async () => {
  const anonymous = new ApiClient(control, undefined)
  const page = await anonymous.get('/join')
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  const script = String((await anonymous.get('/join.js')).body)
  // No request is sent before the secret is removed from the address bar.
  expect(script.indexOf('replaceState')).toBeLessThan(script.indexOf('fetch('))
  expect(script.indexOf('replaceState')).toBeGreaterThan(0)
})
