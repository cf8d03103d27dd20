import { Database } from 'bun:sqlite'
import { SandwireError } from '@sandwire/protocol'
import { expect, test } from 'bun:test'
import { deliverFarewells } from '../src/account/deliver-farewells.ts'
import { Farewells, type Word } from '../src/account/farewells.ts'
import { AccountStore } from '../src/account/store.ts'
import { refuseEndedSignIns } from '../src/auth/authenticator.ts'
import { unauthorized } from '../src/auth/identity.ts'
import { createLog } from '../src/log.ts'
import { sqlOf } from './support/bun-sql.ts'

const LOGIN: Word = { is: 'login', login: 'l1', endedMs: 0 }
const HOUR_MS = 60 * 60 * 1000
const log = createLog(
  () => undefined,
  () => 0,
)

function open(): Farewells {
  const sql = sqlOf(new Database(':memory:'))
  void new AccountStore(sql)
  return new Farewells(sql)
}

test('each sandbox is told once, until it has heard', async () => {
  const farewells = open()
  farewells.say(['a', 'b', 'a'], LOGIN, 0)
  farewells.say(['a'], LOGIN, 0)
  const told: string[] = []
  let isAway = true
  const evict = (): Promise<void> => Promise.reject(new Error('nothing is to be removed'))
  const tell = async (sandbox: string): Promise<void> => {
    told.push(sandbox)
    if (isAway && sandbox === 'b') throw new SandwireError('sandbox_unreachable', 'no')
  }
  await deliverFarewells({ farewells, tell, evict, nowMs: () => 0, log })
  expect(told).toEqual(['a', 'b'])
  expect(farewells.nextMs).toBe(500)
  await deliverFarewells({ farewells, tell, evict, nowMs: () => 499, log })
  expect(told).toEqual(['a', 'b'])
  isAway = false
  await deliverFarewells({ farewells, tell, evict, nowMs: () => 500, log })
  expect(told).toEqual(['a', 'b', 'b'])
  expect(farewells.count).toBe(0)
  expect(farewells.nextMs).toBeUndefined()
})

test('a word that is said again waits for no earlier one that was not heard', () => {
  const farewells = open()
  farewells.say(['a'], LOGIN, HOUR_MS)
  for (const farewell of farewells.due(HOUR_MS)) farewells.failed({ ...farewell, tries: 9 }, HOUR_MS)
  expect(farewells.due(HOUR_MS + 1_000)).toEqual([])
  farewells.say(['a'], LOGIN, HOUR_MS + 1_000)
  expect(farewells.due(HOUR_MS + 1_000)).toMatchObject([{ sandbox: 'a', tries: 0 }])
})

test('(threat T6) everybody is cut off in all sandboxes before one of them is waited for', async () => {
  const farewells = open()
  const own = Array.from({ length: 40 }, (_, index) => `s${index}`)
  farewells.say(own, { is: 'destroy', account: 'ada' }, 0)
  farewells.say(['shared'], { is: 'leave', account: 'ada' }, 0)
  const told: string[] = []
  const evicted = new Set<string>()
  const released = Promise.withResolvers<void>()
  const delivery = deliverFarewells({
    farewells,
    nowMs: () => 0,
    log,
    evict: async (sandbox) => {
      evicted.add(sandbox)
      if (sandbox === 's3') throw new SandwireError('sandbox_unreachable', 'no')
      if (Number(sandbox.slice(1)) < 32) await released.promise
    },
    tell: async (sandbox) => {
      told.push(sandbox)
      if (sandbox !== 'shared') await released.promise
    },
  })
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
  expect([...evicted]).toEqual(own)
  expect(told).toContain('shared')
  released.resolve()
  await delivery
  expect(told.toSorted()).toEqual([...own, 'shared'].toSorted())
  expect(farewells.count).toBe(0)
})

test('a clock that was set back delays nothing for long', () => {
  const farewells = open()
  farewells.say(['a'], LOGIN, 10 * HOUR_MS)
  expect(farewells.due(9 * HOUR_MS).length).toBe(1)
})

test('(threat T6) a token whose sign-in ended is not accepted, others of the account are', () => {
  const farewells = open()
  farewells.endToken({ token: 'l1', issuedMs: 0, expiresMs: HOUR_MS }, 0)
  expect(farewells.accepts({ login: 'l1', issuedMs: 0 }, 10)).toBe(false)
  // An hour more on a clock that jumps changes nothing: the token itself has ended then.
  expect(farewells.accepts({ login: 'l1', issuedMs: 0 }, 2 * HOUR_MS)).toBe(false)
  expect(farewells.accepts({ login: 'l2', issuedMs: 0 }, 10)).toBe(true)
})

test('(threat T6) who signs in again under the same sign-in of their issuer is accepted', () => {
  const farewells = open()
  farewells.endToken({ token: 'sid', issuedMs: 0, expiresMs: HOUR_MS }, 10_000)
  for (const issuedMs of [0, 10_000, 15_000])
    expect(farewells.accepts({ login: 'sid', issuedMs }, 20_000)).toBe(false)
  expect(farewells.accepts({ login: 'sid', issuedMs: 16_000 }, 20_000)).toBe(true)
  // Of one that does not say when it was issued, nobody can tell.
  expect(farewells.accepts({ login: 'sid' }, 20_000)).toBe(false)
  expect(farewells.accepts({ login: 'sid' }, 31 * 24 * HOUR_MS)).toBe(true)
})

test('(threat T6) signing out by a token that ends soon ends older ones that live longer, whoever signs out next', () => {
  const farewells = open()
  farewells.endToken({ token: 'sid', issuedMs: 5_000, expiresMs: 11_000 }, 10_000)
  farewells.endToken({ token: 'other', issuedMs: 0, expiresMs: 40 * 24 * HOUR_MS }, HOUR_MS)
  expect(farewells.accepts({ login: 'sid', issuedMs: 1_000 }, 2 * HOUR_MS)).toBe(false)
  // A second sign-out moves the moment on, and an issuer whose clock is ahead does not get past it.
  farewells.endToken({ token: 'sid', issuedMs: 3 * HOUR_MS + 30_000, expiresMs: 4 * HOUR_MS }, 3 * HOUR_MS)
  expect(farewells.accepts({ login: 'sid', issuedMs: 3 * HOUR_MS + 30_000 }, 3 * HOUR_MS)).toBe(false)
  // What was said once is not taken back by a clock that was set back.
  farewells.endToken({ token: 'sid', expiresMs: 0 }, 0)
  expect(farewells.accepts({ login: 'sid', issuedMs: 2 * HOUR_MS }, 3 * HOUR_MS)).toBe(false)
})

test('(threat T6) a token that was ended stays so, however many are ended after it', () => {
  const farewells = open()
  const untilMs = 40 * 24 * HOUR_MS
  farewells.endToken({ token: 'first', issuedMs: HOUR_MS, expiresMs: untilMs }, 2 * HOUR_MS)
  farewells.endToken({ token: 'undated', expiresMs: untilMs }, 2 * HOUR_MS + 1)
  for (let index = 0; index < 1_005; index += 1)
    farewells.endToken({ token: `t${index}`, expiresMs: 4 * HOUR_MS }, 3 * HOUR_MS + index)
  const nowMs = 5 * HOUR_MS
  expect(farewells.accepts({ login: 'first', issuedMs: HOUR_MS }, nowMs)).toBe(false)
  expect(farewells.accepts({ login: 'undated' }, nowMs)).toBe(false)
  expect(farewells.accepts({ login: 'undated' }, untilMs + 1)).toBe(true)
  expect(farewells.accepts({ login: 't0', issuedMs: 3 * HOUR_MS }, nowMs)).toBe(false)
  // Nobody remembers which they were, so what is as old is refused with them, and nothing else.
  expect(farewells.accepts({ login: 'other', issuedMs: HOUR_MS }, nowMs)).toBe(false)
  expect(farewells.accepts({ login: 'other', issuedMs: 4 * HOUR_MS }, nowMs)).toBe(true)
})

test('(threat T6) tokens from before a deletion are not accepted, later ones are', () => {
  const farewells = open()
  expect(farewells.accepts({ login: 'l1' }, 0)).toBe(true)
  farewells.close(10 * HOUR_MS)
  for (const issuedMs of [0, 10 * HOUR_MS, 10 * HOUR_MS + 60_000])
    expect(farewells.accepts({ login: 'l1', issuedMs }, 11 * HOUR_MS)).toBe(false)
  expect(farewells.accepts({ login: 'l1', issuedMs: 10 * HOUR_MS + 60_001 }, 11 * HOUR_MS)).toBe(true)
  expect(farewells.accepts({ login: 'l1' }, 11 * HOUR_MS)).toBe(false)
  expect(farewells.accepts({ login: 'l1' }, 35 * HOUR_MS)).toBe(true)
})

test('only credentials of a sign-in are asked about', async () => {
  const asked: string[] = []
  const of = (login?: string) =>
    refuseEndedSignIns(
      {
        authenticate: async () => ({
          account: 'a',
          name: '',
          scopes: [],
          via: 'bearer',
          ...(login === undefined ? {} : { login }),
        }),
      },
      async (_, dated) => {
        asked.push(dated.login)
        return dated.login === 'good'
      },
    )
  expect(await of().authenticate(new Headers())).toMatchObject({ account: 'a' })
  expect(asked).toEqual([])
  expect(await of('good').authenticate(new Headers())).toMatchObject({ account: 'a' })
  expect(of('ended').authenticate(new Headers())).rejects.toThrow(unauthorized('the sign-in has ended'))
})
