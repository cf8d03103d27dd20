import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { eventually, rejectionOf, type RawWebSocket } from '@sandwire/testing'
import { createLog } from '../src/log.ts'
import type { AttachCall } from '../src/sandbox/call.ts'
import { needsRecheck, RecheckAuthorization } from '../src/sandbox/recheck-authorization.ts'
import type { Selector } from '../src/sandbox/revocation.ts'
import { reauthorizeAt } from '../src/sandbox/sessions.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { sqlOf } from './support/bun-sql.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { JWT_SECRET, linkIn, ApiClient, textIn, UNLIMITED } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'

const ID = '0'.repeat(32)
const MINUTE_MS = 60_000
const QUARTER_MS = 15 * MINUTE_MS

const CALL: AttachCall = {
  identity: 'ada',
  name: 'Ada',
  scopes: ['connect', 'exec'],
  address: '',
  requestId: 'r',
  query: '',
  dialect: 'plain',
  session: 's1',
  isIdempotent: false,
} as const

function open() {
  const store = new SandboxStore(sqlOf(new Database(':memory:')))
  const settings = {
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: {},
  } as const
  const state = { kind: 'running', address: 'slot:1', epoch: 'e1', startedMs: 0 } as const
  store.insert({ id: ID, owner: 'owner', name: 'dev', createdMs: 0, lastActivityMs: 0, settings, state })
  const clock = { nowMs: 1_000_000 }
  const disconnected: Selector[] = []
  const checked: unknown[] = []
  const account = { hasSignIn: false, accepts: async (): Promise<boolean> => true }
  const recheck = new RecheckAuthorization({
    store,
    revocation: { disconnect: async (selector) => void disconnected.push(selector) },
    credentials: {
      hasSignIn: async () => account.hasSignIn,
      accepts: (_, connection) => {
        checked.push(connection)
        return account.accepts()
      },
    },
    pollMs: MINUTE_MS,
    nowMs: () => clock.nowMs,
    log: createLog(
      () => undefined,
      () => 0,
    ),
  })
  return {
    store,
    clock,
    disconnected,
    checked,
    account,
    recheck,
    give(grant: string, role: 'collaborator' | 'viewer' = 'collaborator', expiresMs = 0x38d7ea4c68000): void {
      const about = {
        label: '',
        createdMs: 0,
        ownerName: '',
        holder: {
          account: 'ada',
          name: '',
        },
      }
      store.sharing.insertGrant(
        {
          id: grant,
          role,
          expiresMs,
          ...about,
        },
        undefined,
      )
    },
    async attach(call: Partial<AttachCall>, grant?: string): Promise<void> {
      recheck.add(
        await recheck.prepare(
          {
            ...CALL,
            ...call,
          },
          grant,
        ),
      )
    },
    async pass(ms: number): Promise<void> {
      clock.nowMs += ms
      await recheck.onAlarm()
    },
  }
}

describe('(threat T6) a plain connection', () => {
  test('is rechecked at least every 15 minutes, and stays open while it is authorized', async () => {
    const made = open()
    made.give('g1')
    await made.attach({ login: 'l1', issuedMs: 5 }, 'g1')
    await made.pass(12 * MINUTE_MS)
    expect(made.checked).toEqual([])
    await made.pass(MINUTE_MS)
    expect(made.checked).toMatchObject([{ login: 'l1', issuedMs: 5, hasStoredSignIn: false }])
    await made.pass(12 * MINUTE_MS)
    expect(made.checked.length).toBe(1)
    await made.pass(MINUTE_MS)
    expect(made.checked.length).toBe(2)
    expect(made.disconnected).toEqual([])
  })

  test('is closed when its sign-in has ended, and no other is', async () => {
    const made = open()
    made.give('g1')
    await made.attach({ login: 'l1' }, 'g1')
    await made.attach({ session: 's2', identity: 'owner' })
    made.account.accepts = async () => false
    await made.pass(QUARTER_MS)
    expect(made.disconnected).toEqual([{ identity: 'ada', session: 's1', login: 'l1', grant: 'g1' }])
    await made.pass(QUARTER_MS)
    expect(made.disconnected.length).toBe(1)
  })

  test.each([
    ['was withdrawn', (made: ReturnType<typeof open>) => void made.store.sharing.removeGrant('g1', 0)],
    [
      'was withdrawn, though another was given',
      (made: ReturnType<typeof open>) => {
        made.store.sharing.removeGrant('g1', 0)
        made.give('g2')
      },
    ],
    [
      'has expired',
      (made: ReturnType<typeof open>) => {
        made.store.sharing.removeGrant('g1', 0)
        made.give('g1', 'collaborator', made.clock.nowMs)
      },
    ],
    [
      'allows viewing only',
      (made: ReturnType<typeof open>) => {
        made.store.sharing.removeGrant('g1', 0)
        made.give('g1', 'viewer')
      },
    ],
  ])('is closed when its grant %s', async (_, change) => {
    const made = open()
    made.give('g1')
    await made.attach({}, 'g1')
    change(made)
    await made.pass(QUARTER_MS)
    expect(made.disconnected).toEqual([{ identity: 'ada', session: 's1', grant: 'g1' }])
  })

  test('stays open while its account does not respond, and is rechecked at the next poll', async () => {
    const made = open()
    await made.attach({ identity: 'owner', login: 'l1' })
    made.account.accepts = () => Promise.reject(new Error('away'))
    await made.pass(QUARTER_MS)
    expect(made.disconnected).toEqual([])
    made.account.accepts = async () => false
    await made.pass(MINUTE_MS)
    expect(made.disconnected).toEqual([{ identity: 'owner', session: 's1', login: 'l1' }])
  })

  test('is stored with whether the account stores its sign-in', async () => {
    const made = open()
    made.account.hasSignIn = true
    await made.attach({ identity: 'owner', login: 'l1', token: 't1' })
    expect(made.store.recheckedConnections.all()).toEqual([
      {
        session: 's1',
        identity: 'owner',
        need: 'work',
        login: 'l1',
        token: 't1',
        hasStoredSignIn: true,
        checkedMs: made.clock.nowMs,
      },
    ])
  })

  test('is not stored when its authorization cannot end, or when it resumes', async () => {
    const made = open()
    await made.attach({ identity: 'owner' })
    await made.attach({ identity: 'owner', login: 'l1', dialect: 'v1' })
    expect(made.store.recheckedConnections.all()).toEqual([])
  })

  test('is refused while the maximum number is stored', async () => {
    const made = open()
    const stay = { identity: 'owner', need: 'work', login: 'l1', hasStoredSignIn: false } as const
    for (let number = 0; number < 10_000; number += 1)
      made.store.recheckedConnections.add({ session: `s${number}`, ...stay }, 0)
    const refused = await rejectionOf(made.attach({ identity: 'owner', login: 'l1', session: 'more' }))
    expect(refused).toMatchObject({ code: 'rate_limited', retryAfterMs: MINUTE_MS })
    expect(refused).toBeInstanceOf(SandwireError)
  })
})

describe('(threat T6) a compat connection', () => {
  const compat = { kind: 'pty', select: 'either' } as const

  test('is rechecked like a plain one, and closed when its sign-in has ended', async () => {
    const made = open()
    await made.attach({ identity: 'owner', dialect: 'v1', compat, login: 'l1', issuedMs: 5 })
    await made.pass(QUARTER_MS)
    expect(made.checked).toHaveLength(1)
    expect(made.disconnected).toEqual([])
    made.account.accepts = async () => false
    await made.pass(QUARTER_MS)
    expect(made.disconnected).toEqual([{ identity: 'owner', session: 's1', login: 'l1' }])
  })

  test('of a viewer stays open while the grant allows viewing', async () => {
    const made = open()
    made.give('g1', 'viewer')
    const join = { dialect: 'v1', compat, joins: 's7' } as const
    const { session: _, ...call } = CALL
    made.recheck.add(await made.recheck.prepare({ ...call, ...join }, 'g1'))
    await made.pass(QUARTER_MS)
    expect(made.disconnected).toEqual([])
    made.store.sharing.removeGrant('g1', 0)
    await made.pass(QUARTER_MS)
    expect(made.disconnected).toEqual([{ identity: 'ada', session: 's7', grant: 'g1' }])
  })

  test('shares a row with connections of the same sign-in, and has one beside those of others', async () => {
    const made = open()
    for (const login of ['l1', 'l1', 'l2'])
      await made.attach({ identity: 'owner', dialect: 'v1', compat, login })
    expect(made.store.recheckedConnections.all().map(({ login }) => login)).toEqual(['l1', 'l2'])
  })
})

describe('(threat T6) a connection must be authorized again', () => {
  const NOW_MS = 1_800_000_000_000
  const at = (expiresMs: number | undefined, more: Partial<AttachCall> = {}): number | undefined => {
    const { dialect = 'v1', compat } = more
    const known = { ...(expiresMs === undefined ? {} : { expiresMs }), ...(compat ? { compat } : {}) }
    const ms = reauthorizeAt({ dialect, ...known }, NOW_MS)
    return ms === undefined ? undefined : ms - NOW_MS
  }

  test('when its credential expires, and after 15 minutes at the latest', () => {
    expect(at(NOW_MS + 5 * MINUTE_MS)).toBe(5 * MINUTE_MS)
    expect(at(NOW_MS + 60 * MINUTE_MS)).toBe(QUARTER_MS)
    expect(at(undefined)).toBeUndefined()
  })

  test('not within the first minute, when the credential is about to expire', () => {
    expect(at(NOW_MS + 1)).toBe(MINUTE_MS)
    expect(at(NOW_MS - MINUTE_MS)).toBe(MINUTE_MS)
  })

  test('at the end of its credential, if it is plain, and never, if it is compat', () => {
    expect(at(NOW_MS + 60 * MINUTE_MS, { dialect: 'plain' })).toBe(60 * MINUTE_MS)
    expect(at(NOW_MS + 60 * MINUTE_MS, { compat: { kind: 'pty', select: 'either' } })).toBeUndefined()
  })
})

test('an authorization is rechecked in time, also after the clock was set back', () => {
  const at = (nowMs: number) => ({ nowMs, maxAgeMs: QUARTER_MS, pollMs: MINUTE_MS })
  const stay = { checkedMs: 100 * MINUTE_MS }
  expect(needsRecheck(stay, at(112 * MINUTE_MS))).toBe(false)
  expect(needsRecheck(stay, at(113 * MINUTE_MS))).toBe(true)
  expect(needsRecheck(stay, at(99 * MINUTE_MS))).toBe(true)
})

/** Replaces a part of the bundle, which must exist. */
function replaced(script: string, part: RegExp, by: string): string {
  if (!part.test(script)) throw new Error(`Control has no ${part.source}`)
  return script.replace(part, by)
}

describe('with the real sandboxd, and sandboxes that are not notified of the end of a sign-in', () => {
  let sandboxes: RealSandboxes
  let control: RunningControl
  beforeAll(async () => {
    sandboxes = new RealSandboxes()
    control = await startControl({
      runner: sandboxes,
      config: { limits: UNLIMITED, alarmMs: 200 },
      bindings: { JWT_SECRET },
      alter: (script) =>
        replaced(
          replaced(script, /REAUTHORIZE_MS = [^,;]+/, 'REAUTHORIZE_MS = 1'),
          /revoke\(event\) \{/,
          'revoke(event) { return { ok: true }',
        ),
    })
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await sandboxes[Symbol.asyncDispose]()
  })

  async function attachPlain(caller: ApiClient, sandbox: string): Promise<RawWebSocket> {
    const { headers } = caller
    const handshake = await upgrade(control, `/attach?sandbox=${sandbox}&cmd=cat`, { headers })
    if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${refusalOf(handshake)}`)
    return handshake.socket
  }

  test('(threat T6) a plain connection ends with its sign-in, and others stay open', async () => {
    const owner = new ApiClient(control, TOKEN)
    const made = await owner.post('/api/sandboxes', { name: 'dev' })
    const sandbox = textIn(made, 'id')
    const [bob, eve] = await Promise.all([
      ApiClient.named(control, 'bob', { jti: 'b' }),
      ApiClient.named(control, 'eve', { jti: 'e' }),
    ])
    for (const caller of [bob, eve]) {
      const grant = await owner.post('/api/grants', { role: 'collaborator', sandbox: 'dev' })
      await caller.post('/api/grants/redeem', { link: linkIn(grant) })
    }
    await using own = await attachPlain(owner, sandbox)
    await using guest = await attachPlain(bob, sandbox)
    await using other = await attachPlain(eve, sandbox)
    expect((await bob.post('/api/signout', undefined)).status).toBe(204)
    expect((await guest.closed).frame).toEqual({ code: 4435, reason: 'revoked' })
    await eventually(() => control.log.some((line) => line.includes('"reauthorize_refused"')), {
      what: 'the log line',
    })
    for (const socket of [own, other]) {
      await socket.sendFrame({ opcode: 2, payload: new TextEncoder().encode('there\n') })
      expect(new TextDecoder().decode((await socket.nextFrame()).payload.subarray(1))).toBe('there\n')
    }
  })

  test('/metrics counts closed WebSockets by code, and the calls of the provider', async () => {
    const owner = new ApiClient(control, TOKEN)
    const sandbox = textIn(await owner.post('/api/sandboxes', { name: 'counted' }), 'id')
    const metrics = async (): Promise<string> => (await control.fetch('/metrics')).text()
    const lost = async (): Promise<number> =>
      Number(/sandwire_websocket_disconnects_total\{code="1006"\} (\d+)/.exec(await metrics())?.[1] ?? 0)
    const before = await lost()
    const socket = await attachPlain(owner, sandbox)
    socket.reset()
    await eventually(async () => (await lost()) > before, { what: 'the count' })
    expect(await metrics()).toMatch(
      /sandwire_provider_calls_total\{provider="host",call="start",outcome="ok"\} \d/,
    )
  })

  test('(threat T6) a plain connection of a guest ends with its sign-in, which the account stores', async () => {
    const owner = new ApiClient(control, TOKEN)
    const sandbox = textIn(await owner.post('/api/sandboxes', { name: 'shared' }), 'id')
    const grant = await owner.post('/api/grants', { role: 'collaborator', sandbox })
    const response = await new ApiClient(control, undefined).post('/api/grants/redeem', {
      link: linkIn(grant),
      name: 'Gus',
    })
    const guest = new ApiClient(control, textIn(response, 'token'))
    await using socket = await attachPlain(guest, sandbox)
    await socket.sendFrame({ opcode: 2, payload: new TextEncoder().encode('there\n') })
    expect((await socket.nextFrame()).opcode).toBe(2)
    expect((await guest.post('/api/signout', undefined)).status).toBe(204)
    expect((await socket.closed).frame).toEqual({ code: 4435, reason: 'revoked' })
  })
})
