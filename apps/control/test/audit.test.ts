import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { fromAddress, SPOOFS } from './support/addresses.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { upgrade } from './support/handshake.ts'
import { codeIn, JWT_SECRET, linkIn, ApiClient, textIn, tokenOf } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { fieldOf } from './support/json.ts'

const CANARY = 'canary-4f1d9b'

interface Row {
  readonly actor: string
  readonly actorName: string
  readonly action: string
  readonly sandbox: string | null
  readonly sandboxName: string | null
  readonly session: string | null
  readonly grant: string | null
  readonly address: string
  readonly outcome: string
  readonly code: string | null
  readonly command: string | null
  readonly requestId: string
}

let sandboxes: RealSandboxes
let control: RunningControl
let owner: ApiClient
beforeAll(async () => {
  sandboxes = new RealSandboxes()
  control = await startControl({
    runner: sandboxes,
    bindings: { JWT_SECRET },
    config: { commands: { blocked: ['reboot'] } },
  })
  owner = new ApiClient(control, TOKEN)
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

async function auditOf(caller: ApiClient, query = ''): Promise<readonly Row[]> {
  const reply = await caller.get(`/api/audit?limit=1000${query}`)
  expect(reply.status).toBe(200)
  return fieldOf(reply.body, 'rows') as readonly Row[]
}

/** Entries are delivered after the response. */
async function rowsWhen(caller: ApiClient, query: string, isThere: (rows: readonly Row[]) => boolean) {
  const check = async (): Promise<readonly Row[] | undefined> => {
    const rows = await auditOf(caller, query)
    return isThere(rows) ? rows : undefined
  }
  return eventually(check, { what: 'the rows to arrive', intervalMs: 50 })
}

const brief = ({ action, outcome, code }: Row): string =>
  `${action} ${outcome}${code === null ? '' : ` ${code}`}`

async function make(caller: ApiClient, name: string): Promise<string> {
  const made = await caller.post('/api/sandboxes', { name, start: false })
  expect(made.status).toBe(201)
  return textIn(made, 'id')
}

/** Grants an account access to a sandbox. */
async function share(name: string, role: string, to: ApiClient): Promise<string> {
  const grant = await owner.post('/api/grants', { sandbox: name, role })
  expect((await to.post('/api/grants/redeem', { link: linkIn(grant) })).status).toBe(200)
  return textIn(grant, 'grant')
}

async function startSession(name: string, json: unknown): Promise<string> {
  const started = await owner.post(`/api/sandboxes/${name}/sessions`, json)
  expect(started.status).toBe(201)
  return textIn(started, 'id')
}

async function open(path: string, caller = owner): Promise<string> {
  const handshake = await upgrade(control, path, { headers: caller.headers, subprotocols: ['sandwire.v1'] })
  if (handshake.kind === 'open') handshake.socket.reset()
  return handshake.kind
}

describe('the audit', () => {
  test('has a row for every action on a sandbox, also after its deletion', async () => {
    const bob = await ApiClient.named(control, 'bob')
    const id = await make(owner, 'all')
    await owner.request('PUT', '/api/sandboxes/all/env', { env: { SECRET: CANARY } })
    await owner.post('/api/sandboxes/all/start', undefined)
    const session = await startSession('all', { cmd: '/bin/sh', args: ['-c', `: ${CANARY}; exec cat`] })
    await owner.get(`/api/sandboxes/all/sessions/${session}/output`)
    await owner.get('/logs/all')
    await owner.request('PUT', `/api/account/sessions/${session}/pin`)
    await owner.delete(`/api/account/sessions/${session}/pin`)
    expect(await open(`/attach?session=${session}`)).toBe('open')
    expect(await open(`/attach?sandbox=all&cmd=/usr/bin/env&arg=${CANARY}`)).toBe('open')
    await owner.post('/api/tickets', { sandbox: 'all', session })
    const grant = await share('all', 'viewer', bob)
    expect(await open(`/terminal/${session}`, bob)).toBe('open')
    await owner.delete(`/api/grants/${grant}`)
    await owner.delete(`/api/account/sessions/${session}`)
    await owner.post('/api/sandboxes/all/exec', { cmd: 'echo', args: [CANARY], env: { A: CANARY } })
    await owner.post('/api/sandboxes/all/stop', undefined)
    expect((await owner.delete('/api/sandboxes/all')).status).toBe(204)

    const rows = (await auditOf(owner, `&sandbox=${id}`)).toReversed()
    expect(rows.map((row) => [row.action, row.actorName === 'bob', row.command])).toEqual([
      ['sandbox.create', false, null],
      ['sandbox.env', false, null],
      ['sandbox.start', false, null],
      ['session.start', false, 'sh'],
      ['output.read', false, null],
      ['logs.read', false, null],
      ['session.pin', false, null],
      ['session.unpin', false, null],
      ['session.join', false, null],
      ['session.start', false, 'env'],
      ['ticket.create', false, null],
      ['grant.create', false, null],
      ['grant.redeem', true, null],
      ['session.join', true, null],
      ['grant.revoke', false, null],
      ['session.end', false, null],
      ['exec', false, 'echo'],
      ['sandbox.stop', false, null],
      ['sandbox.destroy', false, null],
    ])
    for (const row of rows) expect(row).toMatchObject({ sandboxName: 'all', outcome: 'allowed', code: null })
    for (const row of rows.filter(({ action }) => action.startsWith('grant.'))) expect(row.grant).toBe(grant)
    const joined = rows.filter(({ action }) => action === 'session.join')
    expect(joined.map((row) => row.session)).toEqual([session, session])
    expect(JSON.stringify(rows)).not.toContain(CANARY)
  })

  test('records the outcome of allowed requests', async () => {
    const id = await make(owner, 'failing')
    await owner.delete(`/api/account/sessions/${id}.${'0'.repeat(26)}`)
    const rows = await rowsWhen(owner, `&sandbox=${id}`, (all) => all.length === 2)
    expect(rows.map(brief)).toEqual(['session.end allowed sandbox_stopped', 'sandbox.create allowed'])
    await owner.delete('/api/sandboxes/failing')
  })

  test('records the client address and ignores headers about it (threat T50)', async () => {
    const lies = Object.fromEntries(SPOOFS.map((name) => [name, '203.0.113.66']))
    const from = { ...fromAddress('192.0.2.7'), ...lies }
    const made = await owner.request('POST', '/api/sandboxes', { name: 'far', start: false }, from)
    const rows = await rowsWhen(owner, `&sandbox=${textIn(made, 'id')}`, (all) => all.length > 0)
    expect(rows.map(({ address }) => address)).toEqual(['192.0.2.7'])
    await owner.delete('/api/sandboxes/far')
  })

  test('records refusals of accounts with access, and none of other accounts', async () => {
    const [viewer, guest, stranger] = await Promise.all(
      ['viewer', 'guest', 'stranger'].map((name) => ApiClient.named(control, name)),
    )
    if (viewer === undefined || guest === undefined || stranger === undefined) throw new Error('People')
    const id = await make(owner, 'refusing')
    const session = await startSession(id, { cmd: 'cat' })
    const other = await startSession(id, { cmd: 'cat' })
    await share(id, 'viewer', viewer)
    const link = await owner.post('/api/grants', { session, role: 'viewer' })
    await guest.post('/api/grants/redeem', { link: linkIn(link) })

    expect(codeIn(await stranger.post(`/api/sandboxes/${id}/stop`, undefined))).toBe('404 sandbox_not_found')
    expect(codeIn(await stranger.delete(`/api/account/sessions/${session}`))).toBe('404 session_not_found')
    expect(await open(`/attach?session=${session}`, stranger)).toBe('open')
    expect(codeIn(await viewer.post(`/api/sandboxes/${id}/stop`, undefined))).toBe('403 forbidden')
    expect(codeIn(await viewer.post(`/api/sandboxes/${id}/exec`, { cmd: 'id' }))).toBe('403 forbidden')
    expect(await open(`/attach?sandbox=${id}&cmd=id`, viewer)).toBe('open')
    expect(codeIn(await guest.delete(`/api/account/sessions/${session}`))).toBe('403 forbidden')
    expect(await open(`/attach?session=${other}`, guest)).toBe('open')

    const rows = await rowsWhen(owner, `&sandbox=${id}`, (all) =>
      all.some((row) => row.session === other && row.outcome === 'refused'),
    )
    const refused = rows.filter(({ outcome }) => outcome === 'refused').toReversed()
    expect(refused.map((row) => `${row.actorName}: ${brief(row)}`)).toEqual([
      'viewer: sandbox.stop refused forbidden',
      'viewer: exec refused forbidden',
      'viewer: session.start refused forbidden',
      'guest: session.end refused forbidden',
      'guest: session.join refused sandbox_not_found',
    ])
    expect(rows.filter(({ actorName }) => actorName === 'stranger')).toEqual([])
    // Refusals of accounts without access are only logged.
    expect(await auditOf(stranger)).toEqual([])
    expect(control.log.filter((line) => line.includes('"event":"request_failed"')).length).toBeGreaterThan(2)
    await owner.delete(`/api/sandboxes/${id}`)
  })

  test('(threat T50) has no row for a share link that its holder redeems again', async () => {
    const bob = await ApiClient.named(control, 'again')
    const id = await make(owner, 'again')
    const grant = await owner.post('/api/grants', { sandbox: id, role: 'viewer' })
    for (let time = 0; time < 20; time += 1)
      expect((await bob.post('/api/grants/redeem', { link: linkIn(grant) })).status).toBe(200)
    expect((await bob.post('/api/tickets', { sandbox: id })).status).toBe(403)
    const rows = await rowsWhen(owner, `&sandbox=${id}`, (all) =>
      all.some(({ action }) => action === 'ticket.create'),
    )
    expect(rows.map(brief).toReversed()).toEqual([
      'sandbox.create allowed',
      'grant.create allowed',
      'grant.redeem allowed',
      'ticket.create refused forbidden',
    ])
    await owner.delete(`/api/sandboxes/${id}`)
  })

  test('names a blocked command without its arguments', async () => {
    const id = await make(owner, 'blocking')
    const cmd = `/sbin/reboot`
    await owner.post(`/api/sandboxes/${id}/exec`, { cmd, args: [CANARY] })
    await owner.post(`/api/sandboxes/${id}/sessions`, { cmd, args: [CANARY] })
    await open(`/attach?sandbox=${id}&cmd=${cmd}&arg=${CANARY}`)
    const rows = await rowsWhen(owner, `&sandbox=${id}`, (all) => all.length === 4)
    expect(rows.map((row) => [brief(row), row.command]).toReversed()).toEqual([
      ['sandbox.create allowed', null],
      ['exec refused command_blocked', 'reboot'],
      ['session.start refused command_blocked', 'reboot'],
      ['session.start refused command_blocked', 'reboot'],
    ])
    expect(JSON.stringify(rows)).not.toContain(CANARY)
    await owner.delete(`/api/sandboxes/${id}`)
  })

  test('records a missing scope once, in the account of the credential', async () => {
    const full = await ApiClient.named(control, 'scoped')
    const weak = new ApiClient(control, await tokenOf('scoped', { scope: 'sandbox:connect' }))
    const id = await make(full, 'mine')
    expect(codeIn(await weak.post('/api/sandboxes/mine/stop', undefined))).toBe('403 forbidden')
    expect(codeIn(await weak.post('/api/sandboxes', { name: 'more' }))).toBe('403 forbidden')
    expect(codeIn(await weak.get('/api/audit'))).toBe('403 forbidden')
    expect(await open('/attach?sandbox=mine&cmd=id', weak)).toBe('open')
    const rows = await rowsWhen(full, '', (all) => all.some(({ action }) => action === 'session.start'))
    expect(rows.map((row) => [brief(row), row.sandbox]).toReversed()).toEqual([
      ['sandbox.create allowed', id],
      ['sandbox.stop refused forbidden', id],
      ['sandbox.create refused forbidden', null],
      ['session.start refused forbidden', id],
    ])
    await full.delete('/api/sandboxes/mine')
  })

  test('(threat T50) has a row that says that refusals were dropped', async () => {
    const full = await ApiClient.named(control, 'flooded')
    const weak = new ApiClient(control, await tokenOf('flooded', { scope: 'sandbox:connect' }))
    for (let index = 0; index < 62; index += 1)
      expect(codeIn(await weak.post('/api/sandboxes', { name: 'more' }))).toBe('403 forbidden')
    const rows = await rowsWhen(full, '', (all) => all.some(({ action }) => action === 'audit.dropped'))
    expect(rows.map(brief).filter((text) => text === 'sandbox.create refused forbidden')).toHaveLength(60)
    expect(rows.filter(({ action }) => action === 'audit.dropped')).toMatchObject([
      { actorName: 'flooded', dropped: 1, outcome: 'allowed' },
    ])
  })

  test('is returned in pages, for the own account only', async () => {
    const ann = await ApiClient.named(control, 'ann')
    const ben = await ApiClient.named(control, 'ben')
    for (const name of ['one', 'two', 'three']) await make(ann, name)
    await make(ben, 'one')
    await rowsWhen(ann, '', (all) => all.length === 3)
    const first = await ann.get('/api/audit?limit=2')
    const names = (body: unknown): unknown[] =>
      (fieldOf(body, 'rows') as readonly Row[]).map((row) => row.sandboxName)
    expect(names(first.body)).toEqual(['three', 'two'])
    const second = await ann.get(`/api/audit?limit=2&before=${textIn(first, 'next')}`)
    expect(names(second.body)).toEqual(['one'])
    expect(fieldOf(second.body, 'next')).toBeNull()
    const others = await rowsWhen(ben, '', (all) => all.length > 0)
    expect(others.map((row) => row.actorName)).toEqual(['ben'])
    expect(await auditOf(ann, '&action=sandbox.stop')).toEqual([])
    for (const query of ['limit=0', 'limit=1001', 'before=x', 'action=nothing', 'since=-1', 'more=1'])
      expect([query, codeIn(await ann.get(`/api/audit?${query}`))]).toEqual([query, '400 bad_request'])
  })

  test('records sign-ins and sign-outs', async () => {
    const code = 'c'.repeat(32)
    control.host.codes.add(code)
    const response = await control.fetch('/api/signin', {
      method: 'POST',
      json: { code },
      headers: { origin: control.origin, authorization: '' },
    })
    expect(response.status).toBe(204)
    const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
    const headers = { cookie, origin: control.origin, authorization: '' }
    expect((await control.fetch('/api/signout', { method: 'POST', headers })).status).toBe(204)
    const rows = await auditOf(owner)
    const signs = rows.filter(({ action }) => action.startsWith('sign'))
    expect(signs.map(brief)).toEqual(['signout allowed', 'signin allowed'])
  })

  test('(threat T36) has rows that request data can neither forge nor disguise', async () => {
    const evil = `\r\n{"action":"fake"}\u001B[2J\u202E`
    const caller = new ApiClient(control, await tokenOf('evil', { name: `eve${evil}` }))
    const id = await make(caller, 'evil')
    const cmd = encodeURIComponent(`/bin/x${evil}${'y'.repeat(1000)}`)
    await open(`/attach?sandbox=evil&cmd=${cmd}`, caller)
    await caller.post('/api/sandboxes/evil/exec', { cmd: `x${evil}` })
    const rows = await rowsWhen(caller, '', (all) => all.filter((row) => row.command !== null).length === 2)
    expect(rows.every(({ sandbox }) => sandbox === id)).toBe(true)
    for (const value of rows.flatMap((row) => Object.values(row)))
      expect(String(value)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
    for (const line of control.log.filter((line) => line !== '' && line.startsWith('{')))
      expect(line).not.toMatch(/\p{C}/u)
    await caller.delete('/api/sandboxes/evil')
  })
})
