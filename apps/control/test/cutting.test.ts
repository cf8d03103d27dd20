import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { rejectionOf } from '@sandwire/testing'
import { createLog } from '../src/log.ts'
import type { Access } from '../src/sandbox/access.ts'
import { type Cut, dueInMs, isSeverDue, MAX_CUTS } from '../src/sandbox/cut-outbox.ts'
import { Cutting } from '../src/sandbox/cutting.ts'
import { SandboxdClient } from '../src/sandbox/sandboxd-client.ts'
import type { SandboxState } from '../src/sandbox/state.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { ProxiedRequests } from '../src/workspace-proxy/requests.ts'
import type { TicketRecord } from '../src/sandbox/tickets.ts'
import { WakeUp } from '../src/sandbox/wake-up.ts'
import { sqlOf } from './support/bun-sql.ts'
import { MemoryProvider } from './support/memory-provider.ts'

const ID = '0'.repeat(32)
const RUNNING: SandboxState = { is: 'running', address: 'slot:1', epoch: 'e1', startedMs: 0 }
const CALLER = { identity: 'ada', authority: 'driver', exec: true, requestId: 'r' } as const

/** What a sandboxd in the test's hand does with a request to close. */
type Answer = Response | SandwireError | 'hangs'

function open(state: SandboxState = RUNNING, database = new Database(':memory:')) {
  const store = new SandboxStore(sqlOf(database))
  const settings = {
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: {},
  } as const
  store.insert({ id: ID, owner: 'local', name: 'dev', createdMs: 0, lastActivityMs: 0, settings, state })
  const clock = { nowMs: 1_000_000 }
  const asked: unknown[] = []
  const severed: number[] = []
  const hand = {
    answer: (): Answer => Response.json({ closed: 1 }),
    sever: async (): Promise<void> => undefined,
  }
  const alarms: number[] = []
  /** Sleeps that wait for the test to let time pass. */
  const sleeps: { atMs: number; wake: () => void }[] = []
  const provider = new MemoryProvider()
  provider.fetch = async (_, { path, body }) => {
    asked.push({ path, body: JSON.parse(typeof body === 'string' ? body : '{}') as unknown })
    const answer = hand.answer()
    if (answer instanceof SandwireError) throw answer
    // Where time is virtual, an answer that comes too late is one that says so.
    if (answer === 'hangs') {
      clock.nowMs += 1_000
      throw new SandwireError('sandbox_unreachable', 'late')
    }
    return answer
  }
  provider.sever = async () => {
    severed.push(clock.nowMs)
    await hand.sever()
  }
  const cutting = new Cutting({
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
    cutting,
    clock,
    asked,
    severed,
    hand,
    alarms,
    settle,
    /** Lets time pass, waking whoever sleeps. */
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

describe('(threat T6) a cut', () => {
  test('is asked of sandboxd at once, and forgotten when it is confirmed', async () => {
    const made = open()
    await made.cutting.cut({ grant: 'g1' })
    expect(made.asked).toEqual([{ path: '/attachments/close', body: { grant: 'g1' } }])
    expect(made.store.cuts.all()).toEqual([])
    expect(made.severed).toEqual([])
    expect(made.alarms.length).toBeGreaterThan(0)
  })

  test('is written down before anything is waited for', () => {
    const made = open()
    made.hand.answer = () => 'hangs'
    void made.cutting.cut({ login: 'l1' })
    expect(made.store.cuts.all()).toMatchObject([{ selector: { login: 'l1' }, epoch: 'e1' }])
  })

  test.each([
    ['hangs', (): Answer => 'hangs'],
    ['is away', (): Answer => new SandwireError('sandbox_unreachable', 'no')],
    ['refuses', (): Answer => Response.json({ error: { code: 'internal', message: '' } }, { status: 500 })],
    ['answers nonsense', (): Answer => new Response('ok')],
    ['confirms nothing', (): Answer => Response.json({})],
    ['counts backwards', (): Answer => Response.json({ closed: -1 })],
  ])('is made without a sandboxd that %s, and asked for until it is confirmed', async (_, answer) => {
    const made = open()
    const beganMs = made.clock.nowMs
    made.hand.answer = answer
    void made.cutting.cut({ grant: 'g1' })
    await made.pass(4_500)
    expect(made.severed.length).toBe(1)
    expect((made.severed[0] ?? 0) - beganMs).toBeLessThanOrEqual(4_000)
    expect(made.store.cuts.all()).toMatchObject([{ isSevered: true }])
    made.hand.answer = () => Response.json({ closed: 0 })
    await made.pass(60_000)
    // The alarm goes on where the object went to sleep.
    await made.cutting.ring()
    expect(made.store.cuts.all()).toEqual([])
    expect(made.severed.length).toBe(1)
  })

  test('is severed again and again while that fails', async () => {
    const made = open()
    made.hand.answer = () => new SandwireError('sandbox_unreachable', 'no')
    made.hand.sever = () => Promise.reject(new SandwireError('provider_unavailable', 'no'))
    void made.cutting.cut({ grant: 'g1' })
    await made.pass(8_000)
    expect(made.severed.length).toBeGreaterThan(2)
    expect(made.store.cuts.all()).toMatchObject([{ isSevered: false }])
  })

  test('severs once for all who wait', async () => {
    const made = open()
    made.hand.answer = () => new SandwireError('sandbox_unreachable', 'no')
    for (const grant of ['g1', 'g2', 'g3']) void made.cutting.cut({ grant })
    await made.pass(4_500)
    expect(made.severed.length).toBe(1)
    expect(made.store.cuts.all().every((cut) => cut.isSevered)).toBe(true)
  })

  test('that comes while another waits is asked for at once', async () => {
    const made = open()
    made.hand.answer = () => new SandwireError('sandbox_unreachable', 'no')
    void made.cutting.cut({ grant: 'g1' })
    await made.pass(10_000)
    made.hand.answer = () => Response.json({ closed: 1 })
    await made.cutting.cut({ grant: 'g2' })
    expect(made.asked.at(-1)).toMatchObject({ body: { grant: 'g2' } })
    expect(made.store.cuts.all().map((cut) => cut.selector.grant)).not.toContain('g2')
  })

  test('goes on in an object that was made anew', async () => {
    const database = new Database(':memory:')
    const first = open(RUNNING, database)
    first.hand.answer = () => 'hangs'
    void first.cutting.cut({ login: 'l1' })
    await first.settle()
    const second = open(RUNNING, database)
    expect(second.cutting.nextMs()).toBeDefined()
    await second.cutting.ring()
    expect(second.asked).toMatchObject([{ body: { login: 'l1' } }])
    expect(second.store.cuts.all()).toEqual([])
  })

  test('ends with the start of the sandbox that it was about', async () => {
    for (const state of [{ is: 'stopped' }, { ...RUNNING, epoch: 'e2' }] as const) {
      const made = open()
      made.hand.answer = () => new SandwireError('sandbox_unreachable', 'no')
      void made.cutting.cut({ grant: 'g1' })
      await made.settle()
      made.store.setState(state)
      await made.pass(1_000)
      expect(made.store.cuts.all()).toEqual([])
      expect(made.severed).toEqual([])
    }
  })

  test('waits for a sandbox that is being stopped, in case it is not', async () => {
    const made = open({ is: 'stopping' })
    void made.cutting.cut({ grant: 'g1' })
    await made.settle()
    expect(made.asked).toEqual([])
    made.store.setState(RUNNING)
    await made.pass(1_000)
    expect(made.asked.length).toBe(1)
    expect(made.store.cuts.all()).toEqual([])
  })

  test('that is asked for again and again is made as soon as the first would have been', async () => {
    const made = open()
    const beganMs = made.clock.nowMs
    made.hand.answer = () => new SandwireError('sandbox_unreachable', 'no')
    for (let times = 0; times < 8; times += 1) {
      void made.cutting.cut({ grant: 'g1' })
      await made.pass(500)
    }
    expect(made.severed.length).toBe(1)
    expect((made.severed[0] ?? 0) - beganMs).toBeLessThanOrEqual(3_500)
    // Who came in behind that one is cut too.
    void made.cutting.cut({ grant: 'g1' })
    await made.pass(3_500)
    expect(made.severed.length).toBe(2)
  })

  test.each([
    ['a sign-in that ended', (one: Cutting) => one.endLogin('l1', 0)],
    ['what a sign-in opened', (one: Cutting) => one.cutLogin('l1')],
    ['an account that leaves', (one: Cutting) => one.leave('ada')],
    ['everybody', (one: Cutting) => one.cutAll('local')],
  ])('of %s is certain before sandboxd has answered', async (_, begin) => {
    const made = open()
    made.hand.answer = () => new Promise<never>(() => undefined) as unknown as Response
    let isCertain = false
    void begin(made.cutting).then(() => (isCertain = true))
    await made.settle()
    expect(isCertain).toBe(true)
    expect(made.store.cuts.all().length).toBe(1)
    expect(made.alarms.length).toBe(1)
    expect(made.asked.length).toBe(1)
  })

  test('of a sandbox that does not run is none', async () => {
    const made = open({ is: 'stopped' })
    await made.cutting.cut({ grant: 'g1' })
    expect(made.asked).toEqual([])
    expect(made.store.cuts.all()).toEqual([])
  })

  test('that is asked for again while its answer is on the way is asked for again', async () => {
    const made = open()
    const late = Promise.withResolvers<Response>()
    made.hand.answer = () => late.promise as unknown as Response
    const first = made.cutting.cut({ grant: 'g1' })
    await made.settle()
    made.hand.answer = () => Response.json({ closed: 1 })
    await made.cutting.cut({ grant: 'g1' })
    late.resolve(Response.json({ closed: 0 }))
    await first
    expect(made.asked.length).toBe(2)
    expect(made.store.cuts.all()).toEqual([])
  })
})

describe('cuts that wait', () => {
  const cut = {
    number: 1,
    selector: {},
    epoch: null,
    sinceMs: 10_000,
    tries: 1,
    nextMs: 10_250,
    isSevered: false,
  }

  test('are due again although the clock was set back, and severed then', () => {
    expect(dueInMs(cut, 10_000)).toBe(250)
    expect(dueInMs(cut, 10_000 - 3_600_000)).toBe(250)
    expect(isSeverDue(cut, 12_999)).toBe(false)
    expect(isSeverDue(cut, 13_000)).toBe(true)
    expect(isSeverDue(cut, 10_000 - 3_600_000)).toBe(true)
    expect(isSeverDue({ ...cut, isSevered: true }, 20_000)).toBe(false)
    expect(isSeverDue({ ...cut, tries: 5 }, 10_001)).toBe(true)
  })

  test('back off to half a minute', () => {
    const waits = [1, 2, 3, 20].map((tries): number => {
      const severed: Cut = { ...cut, tries, nextMs: 1e12, isSevered: true }
      return dueInMs(severed, 10_000)
    })
    expect(waits).toEqual([250, 500, 1_000, 30_000])
  })

  test('are bounded, and none is dropped before it was severed', () => {
    const { store } = open()
    for (let number = 0; number < MAX_CUTS + 10; number += 1) store.cuts.add({ grant: `g${number}` }, 'e1', 0)
    expect(store.cuts.all().length).toBe(MAX_CUTS + 10)
    store.cuts.noteSevered(store.cuts.all().at(-1)?.number ?? 0)
    for (let number = 0; number < 5; number += 1) store.cuts.add({ login: `l${number}` }, 'e1', 0)
    expect(store.cuts.all().length).toBe(MAX_CUTS)
    store.cuts.add({ login: 'l0' }, 'e1', 0)
    expect(store.cuts.all().length).toBe(MAX_CUTS)
  })
})

describe('(threat T6) an attach that was under way', () => {
  const ACCESS: Access = { need: 'work', authority: 'driver' }

  test('goes through when nothing changed', async () => {
    const made = open()
    await made.cutting.checkAgain(CALLER, () => ACCESS)
    expect(made.asked).toEqual([])
  })

  test.each([
    [
      'its right was withdrawn',
      () => {
        throw new SandwireError('sandbox_not_found', 'no')
      },
      'sandbox_not_found',
    ],
    [
      'it has less than it was given',
      () => ({ need: 'watch', authority: 'viewer', grant: 'g2' }) as const,
      'revoked',
    ],
  ] as const)('is cut when %s meanwhile', async (_, allow, code) => {
    const made = open()
    const caller = { ...CALLER, grant: 'g1', login: 'l1' }
    const refused = await rejectionOf(made.cutting.checkAgain(caller, allow))
    expect(refused).toMatchObject({ code })
    expect(made.asked).toMatchObject([{ body: { identity: 'ada', login: 'l1', grant: 'g1' } }])
  })
})

test('the end of a sign-in takes its tickets and connections along', async () => {
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
  await made.cutting.endLogin('l1', nowMs)
  for (const issuedMs of [undefined, nowMs - 1, nowMs])
    expect(made.store.cuts.hasEnded('l1', issuedMs, nowMs)).toBe(true)
  // An issuer may give the same sign-in to who comes back.
  expect(made.store.cuts.hasEnded('l1', nowMs + 6_000, nowMs)).toBe(false)
  expect(made.store.cuts.hasEnded('l2', undefined, nowMs)).toBe(false)
  expect(made.store.sharing.takeTicket('h', made.clock.nowMs)).toBeUndefined()
  expect(made.asked).toMatchObject([{ body: { login: 'l1' } }])
})

test('(threat T6) a grant that expires cuts who came by it, and the alarm is set for that', async () => {
  const made = open()
  const grant = { id: `${ID}.g1`, role: 'viewer', label: '', createdMs: 0, ownerName: '' } as const
  made.store.sharing.insertGrant({ ...grant, expiresMs: made.clock.nowMs + 5_000 }, undefined)
  expect(made.cutting.nextMs()).toBe(made.clock.nowMs + 5_000)
  await made.cutting.ring()
  expect(made.asked).toEqual([])
  made.clock.nowMs += 5_000
  await made.cutting.ring()
  expect(made.asked).toMatchObject([{ body: { grant: grant.id } }])
  expect(made.cutting.nextMs()).toBeUndefined()
})

describe('(threat T6) tickets', () => {
  const outOf = ({ store, clock }: ReturnType<typeof open>): readonly string[] =>
    store.sharing.outTickets(clock.nowMs).map(({ account }) => account)

  function openWithTickets(accounts: readonly string[]) {
    const made = open()
    for (const account of accounts) {
      const ticket = { account, name: '', scopes: [], role: 'driver', origin: null } satisfies TicketRecord
      made.store.sharing.insertTicket(`hash of ${account}`, ticket, made.clock.nowMs + 30_000)
    }
    return made
  }

  test('of an account that leaves open nothing any more', async () => {
    const made = openWithTickets(['ada', 'bob'])
    await made.cutting.leave('ada')
    expect(outOf(made)).toEqual(['bob'])
  })

  test('of everybody end with the account of the owner, though the sandbox is not gone yet', async () => {
    const made = openWithTickets(['local', 'bob'])
    await made.cutting.cutAll('local')
    expect(outOf(made)).toEqual([])
  })
})

test('an account that leaves loses its grants, and its connections', async () => {
  const made = open()
  const grant = { id: 'g1', role: 'viewer', label: '', createdMs: 0, expiresMs: 1e15, ownerName: '' } as const
  made.store.sharing.insertGrant({ ...grant, holder: { account: 'ada', name: '' } }, undefined)
  await made.cutting.leave('ada')
  expect(made.store.sharing.grantsOf('ada')).toEqual([])
  expect(made.asked).toMatchObject([{ body: { identity: 'ada' } }])
})

test('one alarm rings for the first who waits for it', async () => {
  let setMs: number | null = null
  const wakeUp = new WakeUp({
    getAlarm: async () => setMs,
    setAlarm: async (atMs) => void (setMs = atMs),
    deleteAlarm: async () => void (setMs = null),
  })
  await Promise.all([wakeUp.by(300), wakeUp.by(100), wakeUp.by(200)])
  expect(setMs as number | null).toBe(100)
  await wakeUp.at(500)
  expect(setMs as number | null).toBe(500)
  await wakeUp.at(undefined)
  expect(setMs as number | null).toBeNull()
})
