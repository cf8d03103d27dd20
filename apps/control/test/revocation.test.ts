import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { rejectionOf } from '@sandwire/testing'
import { createLog } from '../src/log.ts'
import type { Access } from '../src/sandbox/access.ts'
import { DISCONNECT_OUTBOX, Revocation, type RevocationEvent } from '../src/sandbox/revocation.ts'
import { SandboxdClient } from '../src/sandbox/sandboxd-client.ts'
import type { SandboxState } from '../src/sandbox/state.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { ProxiedRequests } from '../src/workspace-proxy/requests.ts'
import type { TicketRecord } from '../src/sandbox/tickets.ts'
import { sqlOf } from './support/bun-sql.ts'
import { MemoryProvider } from './support/memory-provider.ts'

const ID = '0'.repeat(32)
const RUNNING: SandboxState = { kind: 'running', address: 'slot:1', epoch: 'e1', startedMs: 0 }
const CALLER = { identity: 'ada', authority: 'driver', exec: true, requestId: 'r' } as const

/** How the fake sandboxd responds to a request to close connections. */
type Reply = Response | SandwireError | 'hangs'

function open(state: SandboxState = RUNNING, database = new Database(':memory:')) {
  const store = new SandboxStore(sqlOf(database))
  const settings = {
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: {},
  } as const
  store.insert({ id: ID, owner: 'local', name: 'dev', createdMs: 0, lastActivityMs: 0, settings, state })
  const clock = { nowMs: 1_000_000 }
  const requests: unknown[] = []
  const disconnectedAll: number[] = []
  const fake = {
    respond: (): Reply => Response.json({ closed: 1 }),
    disconnectAll: async (): Promise<void> => undefined,
  }
  const alarms: number[] = []
  /** Pending sleeps, which `pass` wakes. */
  const sleeps: { atMs: number; wake: () => void }[] = []
  const provider = new MemoryProvider()
  provider.fetch = async (_, { path, body }) => {
    requests.push({ path, body: JSON.parse(typeof body === 'string' ? body : '{}') as unknown })
    const answer = fake.respond()
    if (answer instanceof SandwireError) throw answer
    // Time is virtual, so a late response is an error.
    if (answer === 'hangs') {
      clock.nowMs += 1_000
      throw new SandwireError('sandbox_unreachable', 'late')
    }
    return answer
  }
  provider.disconnectAll = async () => {
    disconnectedAll.push(clock.nowMs)
    await fake.disconnectAll()
  }
  const revocation = new Revocation({
    store,
    provider,
    sandboxd: (sandbox) =>
      new SandboxdClient({
        sandbox,
        provider,
        signer: { publicKey: 'k', sign: async () => 'token' },
        nowMs: () => clock.nowMs,
      }),
    nowMs: () => clock.nowMs,
    sleep: (ms) =>
      new Promise((resolve) => void sleeps.push({ atMs: clock.nowMs + ms, wake: () => resolve() })),
    mintRequestId: () => 'r',
    requests: new ProxiedRequests(),
    wakeBy: async (atMs) => void alarms.push(atMs),
    log: createLog(
      () => undefined,
      () => 0,
    ),
  })
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
  }
  return {
    store,
    revocation,
    pending: () => store.disconnectOutbox.pending(),
    clock,
    requests,
    disconnectedAll,
    fake,
    alarms,
    settle,
    /** Advances the clock and wakes the sleeps that are due. */
    async pass(ms: number): Promise<void> {
      const untilMs = clock.nowMs + ms
      await settle()
      for (;;) {
        sleeps.sort((one, two) => one.atMs - two.atMs)
        const [first] = sleeps
        if (first === undefined || first.atMs > untilMs) break
        sleeps.shift()
        clock.nowMs = Math.max(clock.nowMs, first.atMs)
        first.wake()
        await settle()
      }
      clock.nowMs = Math.max(clock.nowMs, untilMs)
    },
  }
}

describe('(threat T6) a request to close connections', () => {
  test('is sent to sandboxd at once, and deleted when it is confirmed', async () => {
    const made = open()
    await made.revocation.disconnect({ grant: 'g1' })
    expect(made.requests).toEqual([{ path: '/attachments/close', body: { grant: 'g1' } }])
    expect(made.pending()).toEqual([])
    expect(made.disconnectedAll).toEqual([])
    expect(made.alarms.length).toBeGreaterThan(0)
  })

  test('is stored before anything is awaited', () => {
    const made = open()
    made.fake.respond = () => 'hangs'
    void made.revocation.disconnect({ login: 'l1' })
    expect(made.pending()).toMatchObject([{ key: '{"login":"l1"}', body: '{"epoch":"e1"}' }])
  })

  test.each([
    ['hangs', (): Reply => 'hangs'],
    ['is unreachable', (): Reply => new SandwireError('sandbox_unreachable', 'no')],
    [
      'returns an error',
      (): Reply => Response.json({ error: { code: 'internal', message: '' } }, { status: 500 }),
    ],
    ['sends an invalid response', (): Reply => new Response('ok')],
    ['confirms nothing', (): Reply => Response.json({})],
    ['sends a negative count', (): Reply => Response.json({ closed: -1 })],
  ])(
    'falls back to the provider when sandboxd %s, and is retried until it is confirmed',
    async (_, answer) => {
      const made = open()
      const beganMs = made.clock.nowMs
      made.fake.respond = answer
      void made.revocation.disconnect({ grant: 'g1' })
      await made.pass(4_500)
      expect(made.disconnectedAll.length).toBe(1)
      expect((made.disconnectedAll[0] ?? 0) - beganMs).toBeLessThanOrEqual(4_000)
      expect(made.pending()).toMatchObject([{ isEscalated: true }])
      made.fake.respond = () => Response.json({ closed: 0 })
      await made.pass(60_000)
      // The alarm takes over where the object stopped sleeping in memory.
      await made.revocation.onAlarm()
      expect(made.pending()).toEqual([])
      expect(made.disconnectedAll.length).toBe(1)
    },
  )

  test('has the provider close all connections again while that fails', async () => {
    const made = open()
    made.fake.respond = () => new SandwireError('sandbox_unreachable', 'no')
    made.fake.disconnectAll = () => Promise.reject(new SandwireError('provider_unavailable', 'no'))
    void made.revocation.disconnect({ grant: 'g1' })
    await made.pass(8_000)
    expect(made.disconnectedAll.length).toBeGreaterThan(2)
    expect(made.pending()).toMatchObject([{ isEscalated: false }])
  })

  test('has the provider close all connections once for all pending requests', async () => {
    const made = open()
    made.fake.respond = () => new SandwireError('sandbox_unreachable', 'no')
    for (const grant of ['g1', 'g2', 'g3']) void made.revocation.disconnect({ grant })
    await made.pass(4_500)
    expect(made.disconnectedAll.length).toBe(1)
    expect(made.pending().every((message) => message.isEscalated)).toBe(true)
  })

  test('is sent at once while another one waits for its retry', async () => {
    const made = open()
    made.fake.respond = () => new SandwireError('sandbox_unreachable', 'no')
    void made.revocation.disconnect({ grant: 'g1' })
    await made.pass(10_000)
    made.fake.respond = () => Response.json({ closed: 1 })
    await made.revocation.disconnect({ grant: 'g2' })
    expect(made.requests.at(-1)).toMatchObject({ body: { grant: 'g2' } })
    expect(made.pending().map(({ key }) => key)).not.toContain('{"grant":"g2"}')
  })

  test('is retried by a new object', async () => {
    const database = new Database(':memory:')
    const first = open(RUNNING, database)
    first.fake.respond = () => 'hangs'
    void first.revocation.disconnect({ login: 'l1' })
    await first.settle()
    const second = open(RUNNING, database)
    expect(second.revocation.nextMs()).toBeDefined()
    await second.revocation.onAlarm()
    expect(second.requests).toMatchObject([{ body: { login: 'l1' } }])
    expect(second.pending()).toEqual([])
  })

  test('is dropped when the sandbox stopped or was restarted', async () => {
    for (const state of [{ kind: 'stopped' }, { ...RUNNING, epoch: 'e2' }] as const) {
      const made = open()
      made.fake.respond = () => new SandwireError('sandbox_unreachable', 'no')
      void made.revocation.disconnect({ grant: 'g1' })
      await made.settle()
      made.store.setState(state)
      await made.pass(1_000)
      expect(made.pending()).toEqual([])
      expect(made.disconnectedAll).toEqual([])
    }
  })

  test('waits while the sandbox is stopping, in case that fails', async () => {
    const made = open({ kind: 'stopping' })
    void made.revocation.disconnect({ grant: 'g1' })
    await made.settle()
    expect(made.requests).toEqual([])
    made.store.setState(RUNNING)
    await made.pass(1_000)
    expect(made.requests.length).toBe(1)
    expect(made.pending()).toEqual([])
  })

  test('that is repeated falls back to the provider as soon as the first one would have', async () => {
    const made = open()
    const beganMs = made.clock.nowMs
    made.fake.respond = () => new SandwireError('sandbox_unreachable', 'no')
    for (let times = 0; times < 8; times += 1) {
      void made.revocation.disconnect({ grant: 'g1' })
      await made.pass(500)
    }
    expect(made.disconnectedAll.length).toBe(1)
    expect((made.disconnectedAll[0] ?? 0) - beganMs).toBeLessThanOrEqual(3_500)
    // A connection that was opened after that is closed too.
    void made.revocation.disconnect({ grant: 'g1' })
    await made.pass(3_500)
    expect(made.disconnectedAll.length).toBe(2)
  })

  test.each([
    { type: 'sign_in_ended', login: 'l1', endedMs: 0 },
    { type: 'disconnect_sign_in', login: 'l1' },
    { type: 'holder_deleted', account: 'ada' },
    { type: 'owner_deleted', account: 'local' },
  ] satisfies RevocationEvent[])('for $type is stored before sandboxd has answered', async (event) => {
    const made = open()
    made.fake.respond = () => new Promise<never>(() => undefined) as unknown as Response
    let isStored = false
    void made.revocation.handle(event).then(() => (isStored = true))
    await made.settle()
    expect(isStored).toBe(true)
    expect(made.pending().length).toBe(1)
    expect(made.alarms.length).toBe(1)
    expect(made.requests.length).toBe(1)
  })

  test('is not stored for a stopped sandbox', async () => {
    const made = open({ kind: 'stopped' })
    await made.revocation.disconnect({ grant: 'g1' })
    expect(made.requests).toEqual([])
    expect(made.pending()).toEqual([])
  })

  test('that is repeated while its response is pending is sent again', async () => {
    const made = open()
    const late = Promise.withResolvers<Response>()
    made.fake.respond = () => late.promise as unknown as Response
    const first = made.revocation.disconnect({ grant: 'g1' })
    await made.settle()
    made.fake.respond = () => Response.json({ closed: 1 })
    await made.revocation.disconnect({ grant: 'g1' })
    late.resolve(Response.json({ closed: 0 }))
    await first
    expect(made.requests.length).toBe(2)
    expect(made.pending()).toEqual([])
  })
})

test('pending requests are bounded, and none is dropped before the provider closed its connections', async () => {
  const made = open()
  made.fake.respond = () => new SandwireError('sandbox_unreachable', 'no')
  const { maxPending } = DISCONNECT_OUTBOX
  for (let number = 0; number < maxPending + 10; number += 1)
    void made.revocation.disconnect({ grant: `g${number}` })
  expect(made.pending().length).toBe(maxPending + 10)
  await made.pass(4_500)
  void made.revocation.disconnect({ login: 'l1' })
  expect(made.pending().length).toBe(maxPending)
})

describe('(threat T6) an attach in progress', () => {
  const ACCESS: Access = { need: 'work', authority: 'driver' }

  test('succeeds when nothing changed', async () => {
    const made = open()
    await made.revocation.recheckAttach(CALLER, () => ACCESS)
    expect(made.requests).toEqual([])
  })

  test.each([
    [
      'its access was revoked',
      () => {
        throw new SandwireError('sandbox_not_found', 'no')
      },
      'sandbox_not_found',
    ],
    [
      'its access was reduced',
      () => ({ need: 'watch', authority: 'viewer', grant: 'g2' }) as const,
      'revoked',
    ],
  ] as const)('is disconnected when %s meanwhile', async (_, allow, code) => {
    const made = open()
    const caller = { ...CALLER, grant: 'g1', login: 'l1' }
    const refused = await rejectionOf(made.revocation.recheckAttach(caller, allow))
    expect(refused).toMatchObject({ code })
    expect(made.requests).toMatchObject([{ body: { identity: 'ada', login: 'l1', grant: 'g1' } }])
  })
})

test('the end of a sign-in removes its tickets and closes its connections', async () => {
  const made = open()
  const ticket: TicketRecord = {
    account: 'ada',
    name: 'Ada',
    scopes: [],
    login: 'l1',
    role: 'driver',
    origin: null,
  }
  made.store.sharing.insertTicket('h', ticket, made.clock.nowMs + 30_000)
  const { nowMs } = made.clock
  await made.revocation.handle({ type: 'sign_in_ended', login: 'l1', endedMs: nowMs })
  for (const issuedMs of [undefined, nowMs - 1, nowMs])
    expect(made.store.endedLogins.includes('l1', issuedMs, nowMs)).toBe(true)
  // An issuer may use the same sign-in id again.
  expect(made.store.endedLogins.includes('l1', nowMs + 6_000, nowMs)).toBe(false)
  expect(made.store.endedLogins.includes('l2', undefined, nowMs)).toBe(false)
  expect(made.store.sharing.takeTicket('h', made.clock.nowMs)).toBeUndefined()
  expect(made.requests).toMatchObject([{ body: { login: 'l1' } }])
})

test('(threat T6) the alarm is set for the expiry of a grant, and closes its connections', async () => {
  const made = open()
  const grant = { id: `${ID}.g1`, role: 'viewer', label: '', createdMs: 0, ownerName: '' } as const
  made.store.sharing.insertGrant({ ...grant, expiresMs: made.clock.nowMs + 5_000 }, undefined)
  expect(made.revocation.nextMs()).toBe(made.clock.nowMs + 5_000)
  await made.revocation.onAlarm()
  expect(made.requests).toEqual([])
  made.clock.nowMs += 5_000
  await made.revocation.onAlarm()
  expect(made.requests).toMatchObject([{ body: { grant: grant.id } }])
  expect(made.revocation.nextMs()).toBeUndefined()
})

describe('(threat T6) tickets', () => {
  const liveTicketsOf = ({ store, clock }: ReturnType<typeof open>): readonly string[] =>
    store.sharing.liveTickets(clock.nowMs).map(({ account }) => account)

  function openWithTickets(accounts: readonly string[]) {
    const made = open()
    for (const account of accounts) {
      const ticket = { account, name: '', scopes: [], role: 'driver', origin: null } satisfies TicketRecord
      made.store.sharing.insertTicket(`hash of ${account}`, ticket, made.clock.nowMs + 30_000)
    }
    return made
  }

  test('of a deleted account are removed', async () => {
    const made = openWithTickets(['ada', 'bob'])
    await made.revocation.handle({ type: 'holder_deleted', account: 'ada' })
    expect(liveTicketsOf(made)).toEqual(['bob'])
  })

  test('of all accounts are removed when the owner is deleted, before the sandbox is', async () => {
    const made = openWithTickets(['local', 'bob'])
    await made.revocation.handle({ type: 'owner_deleted', account: 'local' })
    expect(liveTicketsOf(made)).toEqual([])
  })
})

test('a deleted account loses its grants and connections', async () => {
  const made = open()
  const grant = { id: 'g1', role: 'viewer', label: '', createdMs: 0, expiresMs: 1e15, ownerName: '' } as const
  made.store.sharing.insertGrant({ ...grant, holder: { account: 'ada', name: '' } }, undefined)
  await made.revocation.handle({ type: 'holder_deleted', account: 'ada' })
  expect(made.store.sharing.grantsOf('ada')).toEqual([])
  expect(made.requests).toMatchObject([{ body: { identity: 'ada' } }])
})
