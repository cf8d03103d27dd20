import { Database } from 'bun:sqlite'
import { SandwireError } from '@sandwire/protocol'
import { expect, test } from 'bun:test'
import { AccountRevocation } from '../src/account/revocation.ts'
import { EndedTokens } from '../src/account/sign-ins.ts'
import { AccountStore } from '../src/account/store.ts'
import { refuseEndedSignIns } from '../src/auth/authenticator.ts'
import { unauthorized } from '../src/auth/identity.ts'
import { createLog } from '../src/log.ts'
import type { RevocationEvent } from '../src/sandbox/revocation.ts'
import { sqlOf } from './support/bun-sql.ts'

const SIGN_IN_ENDED: RevocationEvent = { type: 'sign_in_ended', login: 'l1', endedMs: 0 }
const HOUR_MS = 60 * 60 * 1000
const log = createLog(
  () => undefined,
  () => 0,
)

function openRevocation() {
  const sql = sqlOf(new Database(':memory:'))
  void new AccountStore(sql)
  const clock = { nowMs: 0 }
  const alarms: number[] = []
  const fake = {
    report: async (_sandbox: string, _event: RevocationEvent): Promise<void> => undefined,
    destroy: async (_sandbox: string): Promise<void> => undefined,
  }
  const revocation = new AccountRevocation({
    exec: (query, ...bindings) => sql.exec(query, ...bindings).toArray(),
    report: (sandbox, event) => fake.report(sandbox, event),
    destroy: (sandbox) => fake.destroy(sandbox),
    wakeBy: async (atMs) => void alarms.push(atMs),
    nowMs: () => clock.nowMs,
    log,
  })
  return { revocation, clock, alarms, fake }
}

test('reports an event once to each sandbox, until it is confirmed', async () => {
  const { revocation, clock, alarms, fake } = openRevocation()
  revocation.enqueue(['a', 'b', 'a'], SIGN_IN_ENDED)
  revocation.enqueue(['a'], { ...SIGN_IN_ENDED, endedMs: 5 })
  const reported: string[] = []
  let isAway = true
  fake.report = async (sandbox) => {
    reported.push(sandbox)
    if (isAway && sandbox === 'b') throw new SandwireError('sandbox_unreachable', 'no')
  }
  await revocation.deliver()
  expect(reported.toSorted()).toEqual(['a', 'b'])
  expect(revocation.pendingSandboxes).toBe(1)
  expect(alarms.at(-1)).toBe(1_000)
  clock.nowMs = 499
  await revocation.deliver()
  expect(reported).toHaveLength(2)
  isAway = false
  clock.nowMs = 500
  await revocation.deliver()
  expect(reported.at(-1)).toBe('b')
  expect(reported).toHaveLength(3)
  expect(revocation.pendingSandboxes).toBe(0)
})

test('reports a repeated event at once, whatever its earlier back-off', async () => {
  const { revocation, clock, fake } = openRevocation()
  let reports = 0
  fake.report = async () => {
    reports += 1
    throw new SandwireError('sandbox_unreachable', 'no')
  }
  revocation.enqueue(['a'], SIGN_IN_ENDED)
  for (clock.nowMs = 0; reports < 9; clock.nowMs += 60_000) await revocation.deliver()
  clock.nowMs -= 59_000
  await revocation.deliver()
  expect(reports).toBe(9)
  revocation.enqueue(['a'], SIGN_IN_ENDED)
  await revocation.deliver()
  expect(reports).toBe(10)
})

test('(threat T6) closes the connections in all sandboxes before one of them is destroyed', async () => {
  const { revocation, fake } = openRevocation()
  const own = Array.from({ length: 40 }, (_, index) => `s${index}`)
  revocation.enqueueDestroy(own, 'ada')
  revocation.enqueue(['shared'], { type: 'holder_deleted', account: 'ada' })
  const reported: string[] = []
  const destroyed: string[] = []
  const released = Promise.withResolvers<void>()
  fake.report = async (sandbox, { type }) => {
    expect(type).toBe(sandbox === 'shared' ? 'holder_deleted' : 'owner_deleted')
    expect(destroyed).toEqual([])
    reported.push(sandbox)
    if (sandbox === 's3') throw new SandwireError('sandbox_unreachable', 'no')
    if (Number(sandbox.slice(1)) < 32) await released.promise
  }
  fake.destroy = async (sandbox) => void destroyed.push(sandbox)
  const delivery = revocation.deliver()
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
  expect(reported).toEqual([...own, 'shared'])
  released.resolve()
  await delivery
  expect(destroyed.toSorted()).toEqual(own.toSorted())
  // s3 has not confirmed that its connections are closed.
  expect(revocation.pendingSandboxes).toBe(1)
})

test('delays nothing for long when the clock was set back', async () => {
  const { revocation, clock, fake } = openRevocation()
  const reported: string[] = []
  fake.report = async (sandbox) => void reported.push(sandbox)
  clock.nowMs = 10 * HOUR_MS
  revocation.enqueue(['a'], SIGN_IN_ENDED)
  clock.nowMs = 9 * HOUR_MS
  await revocation.deliver()
  expect(reported).toEqual(['a'])
})

function openTokens(): EndedTokens {
  const sql = sqlOf(new Database(':memory:'))
  void new AccountStore(sql)
  return new EndedTokens(sql)
}

test('(threat T6) refuses tokens of an ended sign-in and accepts others', () => {
  const tokens = openTokens()
  tokens.end({ token: 'l1', issuedMs: 0, expiresMs: HOUR_MS }, 0)
  expect(tokens.accepts({ login: 'l1', issuedMs: 0 }, 10)).toBe(false)
  // Also after the token itself has expired.
  expect(tokens.accepts({ login: 'l1', issuedMs: 0 }, 2 * HOUR_MS)).toBe(false)
  expect(tokens.accepts({ login: 'l2', issuedMs: 0 }, 10)).toBe(true)
})

test('(threat T6) accepts tokens that an issuer issues later for the same sign-in id', () => {
  const tokens = openTokens()
  tokens.end({ token: 'sid', issuedMs: 0, expiresMs: HOUR_MS }, 10_000)
  for (const issuedMs of [0, 10_000, 15_000])
    expect(tokens.accepts({ login: 'sid', issuedMs }, 20_000)).toBe(false)
  expect(tokens.accepts({ login: 'sid', issuedMs: 16_000 }, 20_000)).toBe(true)
  // A token without an issue time may be older.
  expect(tokens.accepts({ login: 'sid' }, 20_000)).toBe(false)
  expect(tokens.accepts({ login: 'sid' }, 31 * 24 * HOUR_MS)).toBe(true)
})

test('(threat T6) refuses older tokens of a sign-in, also those that expire later than the one it ended with', () => {
  const tokens = openTokens()
  tokens.end({ token: 'sid', issuedMs: 5_000, expiresMs: 11_000 }, 10_000)
  tokens.end({ token: 'other', issuedMs: 0, expiresMs: 40 * 24 * HOUR_MS }, HOUR_MS)
  expect(tokens.accepts({ login: 'sid', issuedMs: 1_000 }, 2 * HOUR_MS)).toBe(false)
  // A second sign-out moves the end forward, also when the clock of the issuer is ahead.
  tokens.end({ token: 'sid', issuedMs: 3 * HOUR_MS + 30_000, expiresMs: 4 * HOUR_MS }, 3 * HOUR_MS)
  expect(tokens.accepts({ login: 'sid', issuedMs: 3 * HOUR_MS + 30_000 }, 3 * HOUR_MS)).toBe(false)
  // A clock that was set back does not move the end back.
  tokens.end({ token: 'sid', expiresMs: 0 }, 0)
  expect(tokens.accepts({ login: 'sid', issuedMs: 2 * HOUR_MS }, 3 * HOUR_MS)).toBe(false)
})

test('(threat T6) refuses an ended token, however many are ended after it', () => {
  const tokens = openTokens()
  const untilMs = 40 * 24 * HOUR_MS
  tokens.end({ token: 'first', issuedMs: HOUR_MS, expiresMs: untilMs }, 2 * HOUR_MS)
  tokens.end({ token: 'undated', expiresMs: untilMs }, 2 * HOUR_MS + 1)
  for (let index = 0; index < 1_005; index += 1)
    tokens.end({ token: `t${index}`, expiresMs: 4 * HOUR_MS }, 3 * HOUR_MS + index)
  const nowMs = 5 * HOUR_MS
  expect(tokens.accepts({ login: 'first', issuedMs: HOUR_MS }, nowMs)).toBe(false)
  expect(tokens.accepts({ login: 'undated' }, nowMs)).toBe(false)
  expect(tokens.accepts({ login: 'undated' }, untilMs + 1)).toBe(true)
  expect(tokens.accepts({ login: 't0', issuedMs: 3 * HOUR_MS }, nowMs)).toBe(false)
  // They are not remembered individually, so every token as old as they are is refused.
  expect(tokens.accepts({ login: 'other', issuedMs: HOUR_MS }, nowMs)).toBe(false)
  expect(tokens.accepts({ login: 'other', issuedMs: 4 * HOUR_MS }, nowMs)).toBe(true)
})

test('(threat T6) refuses tokens from before the deletion of the account and accepts later ones', () => {
  const tokens = openTokens()
  expect(tokens.accepts({ login: 'l1' }, 0)).toBe(true)
  tokens.deleteAccount(10 * HOUR_MS)
  for (const issuedMs of [0, 10 * HOUR_MS, 10 * HOUR_MS + 60_000])
    expect(tokens.accepts({ login: 'l1', issuedMs }, 11 * HOUR_MS)).toBe(false)
  expect(tokens.accepts({ login: 'l1', issuedMs: 10 * HOUR_MS + 60_001 }, 11 * HOUR_MS)).toBe(true)
  expect(tokens.accepts({ login: 'l1' }, 11 * HOUR_MS)).toBe(false)
  expect(tokens.accepts({ login: 'l1' }, 35 * HOUR_MS)).toBe(true)
})

test('checks credentials with a sign-in only', async () => {
  const requested: string[] = []
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
        requested.push(dated.login)
        return dated.login === 'good'
      },
    )
  expect(await of().authenticate(new Headers())).toMatchObject({ account: 'a' })
  expect(requested).toEqual([])
  expect(await of('good').authenticate(new Headers())).toMatchObject({ account: 'a' })
  expect(of('ended').authenticate(new Headers())).rejects.toThrow(unauthorized('the sign-in has ended'))
})
