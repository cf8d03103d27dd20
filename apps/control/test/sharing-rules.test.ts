import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { ROLES } from '@sandwire/protocol'
import { rejectionOf } from '@sandwire/testing'
import { createTicketAuthenticator } from '../src/auth/ticket.ts'
import { sha256Hex } from '../src/bytes.ts'
import { HeldGrants, AccountStore } from '../src/account/store.ts'
import { type Access, accessName, grantedRole } from '../src/sandbox/access.ts'
import {
  decideRedemption,
  type GrantRecord,
  mintGrantId,
  noticeOf,
  parseLink,
  sandboxOfGrant,
} from '../src/sandbox/grants.ts'
import type { SandboxLifecycle } from '../src/sandbox/lifecycle.ts'
import type { SandboxSessions } from '../src/sandbox/sessions.ts'
import { SandboxSharing } from '../src/sandbox/sharing.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { sandboxOfTicket, ticketScopes } from '../src/sandbox/tickets.ts'
import { sqlOf } from './support/bun-sql.ts'

const SANDBOX = '0'.repeat(32)
const GRANT = `${SANDBOX}.${'1'.repeat(20)}`
const SECRET = 's'.repeat(43)

function grant(over: Partial<GrantRecord & { linkHash: string }> = {}) {
  return {
    id: GRANT,
    role: 'viewer',
    label: '',
    createdMs: 0,
    expiresMs: 100,
    ownerName: 'Ann',
    ...over,
  } as GrantRecord & { linkHash?: string }
}

function openStore(): SandboxStore {
  const store = new SandboxStore(sqlOf(new Database(':memory:')))
  store.insert({
    id: SANDBOX,
    owner: 'ann',
    name: 'dev',
    createdMs: 0,
    lastActivityMs: 0,
    state: { kind: 'stopped' },
    settings: {
      network: {
        policy: 'none',
        allow: [],
      },
      limits: {
        memoryBytes: 1,
        pids: 1,
        milliCpus: 1,
        diskBytes: 1,
      },
      env: {},
    },
  })
  return store
}

describe('ids and share links', () => {
  test('a grant id contains its sandbox and never parses as a session id', () => {
    const id = mintGrantId(SANDBOX, (bytes) => crypto.getRandomValues(bytes))
    expect(sandboxOfGrant(id)).toBe(SANDBOX)
    expect(sandboxOfGrant(`${SANDBOX}.${'0'.repeat(26)}`)).toBeUndefined()
  })

  test.each(['', GRANT, `${GRANT}.`, `${GRANT}.${SECRET}x`, `${GRANT}.${SECRET}.x`, ` ${GRANT}.${SECRET}`])(
    'a malformed share link is not parsed: %j',
    (text) => {
      expect(parseLink(text)).toBeUndefined()
    },
  )

  test('a share link has two parts', () => {
    expect(parseLink(`${GRANT}.${SECRET}`)).toEqual({ grant: GRANT, secret: SECRET })
  })

  test('a ticket contains its sandbox', () => {
    expect(sandboxOfTicket(`${SANDBOX}.${SECRET}`)).toBe(SANDBOX)
    for (const text of ['', SECRET, `${SANDBOX}.`, `${SANDBOX}.${SECRET}.`, `x.${SECRET}`])
      expect(sandboxOfTicket(text)).toBeUndefined()
  })

  test('a ticket is valid for sockets only', () => {
    expect(ticketScopes(['connect', 'exec', 'admin', 'operator'])).toEqual(['connect', 'exec'])
    expect(ticketScopes(['connect'])).toEqual(['connect'])
  })

  test('only grants that allow a shell say so', () => {
    expect(noticeOf('viewer')).toBeUndefined()
    expect(noticeOf('collaborator')).toContain('every file')
  })
})

describe('redeeming a share link', () => {
  const requests = {
    owner: 'ann',
    account: 'bob',
    isSecretRight: (hash: string) => hash === 'right',
    nowMs: 50,
  }
  const open = grant({ linkHash: 'right' })
  const held = grant({ holder: { account: 'bob', name: 'Bob' } })

  test.each([
    ['bind', open, {}],
    ['held', held, {}],
    ['spent', held, { account: 'eve' }],
    // The owner does not use up the share link, and a wrong one reveals nothing.
    ['own', open, { account: 'ann' }],
    ['spent', grant({ linkHash: 'wrong' }), { account: 'ann' }],
    ['spent', undefined, {}],
    ['spent', grant({ linkHash: 'wrong' }), {}],
    ['spent', grant(), {}],
    ['spent', open, { nowMs: 100 }],
    ['spent', held, { nowMs: 100 }],
  ] as const)('returns %s', (expected, found, over) => {
    expect(decideRedemption(found, { ...requests, ...over })).toBe(expected)
  })
})

describe('the role of a connection', () => {
  const driver = { authority: 'driver', grant: GRANT } as const
  const scopes = ['connect', 'exec'] as const

  test('never exceeds access and ticket', () => {
    for (const authority of ROLES)
      for (const maxRole of ROLES)
        for (const query of ['role=driver', 'take=1', '', 'role=viewer']) {
          const found = grantedRole({ authority, grant: GRANT }, { query, maxRole, joins: 's', scopes })
          expect(ROLES.indexOf(found.authority as 'viewer')).toBeLessThanOrEqual(
            Math.min(ROLES.indexOf(authority), ROLES.indexOf(maxRole)),
          )
        }
  })

  test('is collaborator by default for a guest who joins a session', () => {
    const helps = { authority: 'driver', usualRole: 'collaborator' } as const
    expect(grantedRole(driver, { query: '', joins: 's', scopes })).toEqual(helps)
    expect(grantedRole(driver, { query: 'cols=80', joins: 's', scopes })).toEqual(helps)
    for (const query of ['role=driver', 'take=1'])
      expect(grantedRole(driver, { query, joins: 's', scopes })).toEqual({ authority: 'driver' })
  })

  test('is driver in a session that the account starts or owns', () => {
    expect(grantedRole(driver, { query: 'cmd=cat', scopes })).toEqual({ authority: 'driver' })
    expect(grantedRole({ authority: 'driver' }, { query: '', joins: 's', scopes })).toEqual({
      authority: 'driver',
    })
  })

  test('(threat T9) is viewer without the scope exec, except where a template runs', () => {
    const join = { query: 'role=driver&take=1', joins: 's', scopes: ['connect'] } as const
    const watches = { authority: 'viewer', templateRole: 'driver' } as const
    expect(grantedRole({ authority: 'driver' }, join)).toEqual(watches)
    const less = { ...join, maxRole: 'collaborator' } as const
    expect(grantedRole(driver, less)).toEqual({ ...watches, templateRole: 'collaborator' })
    expect(grantedRole(driver, { ...join, query: '' })).toEqual({ ...watches, usualRole: 'collaborator' })
    const start = { query: 'template=wait', scopes: ['connect'] } as const
    expect(grantedRole(driver, start)).toEqual({ authority: 'driver' })
  })

  test('has a name', () => {
    const base: Access = { need: 'own', authority: 'driver' }
    expect(accessName(base)).toBe('owner')
    expect(accessName({ ...base, need: 'work', grant: GRANT })).toBe('collaborator')
    expect(accessName({ need: 'see', authority: 'viewer', grant: GRANT })).toBe('viewer')
  })
})

describe('the store', () => {
  test('stores a grant, binds it, and deletes the hash of its share link', () => {
    const { sharing } = openStore()
    sharing.insertGrant(grant({ session: 's', label: 'for Bob' }), 'hash')
    expect(sharing.grant(GRANT)).toEqual(grant({ session: 's', label: 'for Bob', linkHash: 'hash' }))
    expect(sharing.grantsOf('bob')).toEqual([])
    sharing.bindGrant(GRANT, { account: 'bob', name: 'Bob' })
    expect(sharing.grant(GRANT)).toEqual(
      grant({ session: 's', label: 'for Bob', holder: { account: 'bob', name: 'Bob' } }),
    )
    expect(sharing.grantsOf('bob')).toHaveLength(1)
    expect(sharing.removeGrant(GRANT, 0)).toBe(true)
    expect(sharing.removeGrant(GRANT, 0)).toBe(false)
  })

  test('returns expired grants and the next expiry', () => {
    const { sharing } = openStore()
    expect(sharing.nextGrantExpiry()).toBeUndefined()
    sharing.insertGrant(grant({ id: 'a', expiresMs: 30 }), undefined)
    sharing.insertGrant(grant({ id: 'b', expiresMs: 20 }), undefined)
    expect(sharing.nextGrantExpiry()).toBe(20)
    expect(sharing.liveGrants(20).map(({ id }) => id)).toEqual(['a'])
    expect(sharing.removeExpiredGrants(20)).toEqual(['b'])
    expect(sharing.nextGrantExpiry()).toBe(30)
  })

  test('returns a ticket once, and never after its expiry', () => {
    const { sharing } = openStore()
    const ticket = {
      account: 'bob',
      name: 'Bob',
      scopes: ['connect' as const],
      role: 'viewer' as const,
      origin: null,
    }
    sharing.insertTicket('a', { ...ticket, login: 'l', session: 's', expiresMs: 9 }, 10)
    expect(sharing.takeTicket('a', 9)).toEqual({ ...ticket, login: 'l', session: 's', expiresMs: 9 })
    expect(sharing.takeTicket('a', 9)).toBeUndefined()
    sharing.insertTicket('b', ticket, 10)
    expect(sharing.takeTicket('b', 10)).toBeUndefined()
    sharing.insertTicket('c', ticket, 10)
    sharing.insertTicket('d', { ...ticket, login: 'l' }, 20)
    expect(sharing.liveTickets(10)).toHaveLength(1)
    sharing.removeTicketsOfLogin('l')
    expect(sharing.liveTickets(10)).toEqual([])
  })
})

describe('the grants that an account holds', () => {
  const held = (at: number) => ({
    grant: `g${at}`,
    sandbox: SANDBOX,
    sandboxName: 'dev',
    role: 'viewer' as const,
    ownerName: 'Ann',
    expiresMs: 1e3 + at,
  })

  const open = (): HeldGrants => {
    const sql = sqlOf(new Database(':memory:'))
    void new AccountStore(sql)
    return new HeldGrants(sql)
  }

  test('are listed in the order of arrival, without expired ones', () => {
    const shared = open()
    for (let at = 0; at < 256; at++) shared.add(held(at), 'redeemed', 0)
    expect(shared.list(0).map(({ grant }) => grant)).toEqual(Array.from({ length: 256 }, (_, at) => `g${at}`))
    expect(shared.list(1_254)).toEqual([held(255)])
    shared.add(held(255), 'redeemed', 0)
    expect(shared.list(1_254)).toHaveLength(1)
    shared.remove('g255')
    expect(shared.list(1_254)).toEqual([])
  })

  test('are limited per source, and none is evicted for another (threat T6)', () => {
    const shared = open()
    for (let at = 0; at < 64; at++) shared.add(held(at), 'assigned', 0)
    expect(() => shared.add(held(64), 'assigned', 0)).toThrow('too many grants')
    for (let at = 100; at < 356; at++) shared.add(held(at), 'redeemed', 0)
    expect(() => shared.add(held(356), 'redeemed', 0)).toThrow('leave one first')
    expect(shared.list(0)).toHaveLength(320)
    expect(shared.list(0)[0]).toEqual(held(0))
    shared.add(held(100), 'redeemed', 0)
    shared.add(held(357), 'assigned', 1_000)
    expect(shared.list(0)).toHaveLength(320)
  })

  test('are removed when the grant is missing, unless it may still be being stored', () => {
    const shared = open()
    shared.add({ ...held(1), expiresMs: 1_000_000 }, 'redeemed', 1_000)
    shared.removeMissing('g1', 60_999)
    expect(shared.list(0)).toHaveLength(1)
    shared.removeMissing('g1', 61_000)
    expect(shared.list(0)).toEqual([])
  })
})

/** Sharing with a fake of the account's index. */
function openSharing(addHeldGrant: () => Promise<void> = async () => undefined) {
  const store = openStore()
  const owner: Access = { need: 'own', authority: 'driver' }
  const lifecycle = {
    authorize: () => ({ record: store.read(), access: owner }),
  } as unknown as SandboxLifecycle
  const dropped: string[] = []
  const sharing = new SandboxSharing({
    lifecycle,
    store,
    sessions: {} as SandboxSessions,
    checkRun: async () => undefined,
    checkConversation: async () => undefined,
    revocation: { disconnect: async () => undefined },
    ticketMs: 10,
    nowMs: () => 1,
    random: (bytes) => crypto.getRandomValues(bytes),
    holders: {
      add: addHeldGrant,
      remove: async (_, id) => void dropped.push(id),
      deliver: async () => undefined,
    },
  })
  return { store, sharing, dropped }
}
const call = { identity: 'ann', name: 'Ann', scopes: [], address: '', requestId: 'r' } as const

test('(threat T6) a ticket authenticates as the token that requested it', async () => {
  const { sharing } = openSharing()
  const offered = `${SANDBOX}.${SECRET}`
  const tickets = createTicketAuthenticator({
    isMinted: async () => true,
    take: async (_, hash, origin) => sharing.takeTicket(hash, origin) ?? null,
  })
  const dated = { login: 'all of them', token: 'this one', issuedMs: 5, expiresMs: 1_000 }
  sharing.issueTicket({ ...call, ...dated }, { hash: await sha256Hex(offered), origin: null })
  const headers = new Headers({ 'sec-websocket-protocol': `sandwire.v1, sandwire.ticket.${offered}` })
  expect(await tickets.authenticate(headers)).toMatchObject({ account: 'ann', via: 'ticket', ...dated })
})

describe("(threat T6) a grant is in the account's index before it is stored", () => {
  const give = { role: 'viewer', lifeMs: 1_000, label: '', account: 'bob' } as const

  test('so that a sign-out finds it after a crash', async () => {
    // A call that never returns leaves what the objects would have stored at a crash.
    const { store, sharing } = openSharing(() => new Promise(() => undefined))
    void sharing.grant(call, give)
    store.sharing.insertGrant(grant(), 'hash')
    void sharing.redeem({ account: 'bob', name: 'Bob' }, GRANT, 'hash')
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
    expect(store.sharing.grantsOf('bob')).toEqual([])
    expect(sharing.held('bob', GRANT)).toBeUndefined()
  })

  test('and is not stored when the index cannot be updated', async () => {
    const { store, sharing } = openSharing(() => Promise.reject(new Error('away')))
    expect(String(await rejectionOf(sharing.grant(call, give)))).toContain('away')
    expect(store.sharing.grantsOf('bob')).toEqual([])
  })
})
