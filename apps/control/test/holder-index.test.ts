import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { eventually, rejectionOf } from '@sandwire/testing'
import { createLog } from '../src/log.ts'
import { HolderIndex } from '../src/sandbox/holder-index.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { ApiClient, codeIn, linkIn, textIn, UNLIMITED } from './support/api-client.ts'
import { sqlOf } from './support/bun-sql.ts'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const NOW = 1_800_000_000_000

/** A sandbox with a grant; `boot` recreates its object. */
function open() {
  const database = new Database(':memory:')
  const clock = { nowMs: NOW }
  const removed: string[] = []
  const failures = { left: 0 }
  const alarms: number[] = []
  const boot = () => {
    const store = new SandboxStore(sqlOf(database))
    const index = new HolderIndex({
      store,
      add: async () => undefined,
      remove: async (account, grant) => {
        if (failures.left > 0) {
          failures.left -= 1
          throw new Error('No answer')
        }
        removed.push(`${account} ${grant}`)
      },
      wakeBy: async (atMs) => void alarms.push(atMs),
      nowMs: () => clock.nowMs,
      log: createLog(
        () => undefined,
        () => 0,
      ),
    })
    return { store, index }
  }
  const first = boot()
  const settings = {
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: {},
  } as const
  const state = { kind: 'stopped' } as const
  first.store.insert({ id: 's', owner: 'o', name: 'dev', createdMs: 0, lastActivityMs: 0, settings, state })
  const give = (id: string, account?: string, expiresMs = NOW + 1_000_000): void =>
    first.store.sharing.insertGrant(
      {
        id,
        role: 'viewer',
        label: '',
        createdMs: 0,
        expiresMs,
        ownerName: '',
        ...(account === undefined ? {} : { holder: { account, name: account } }),
      },
      account === undefined ? 'hash' : undefined,
    )
  return { ...first, boot, give, clock, removed, failures, alarms }
}

test('removes a revoked grant from the index of its holder after failures and a crash', async () => {
  const { store, boot, give, clock, removed, failures, alarms } = open()
  give('g1', 'bob')
  give('g2')
  failures.left = 2
  store.sharing.removeGrant('g1', NOW)
  store.sharing.removeGrant('g2', NOW)
  // Nothing was sent before the crash; the alarm of the next object sends it.
  for (const _ of [1, 2, 3]) {
    const { index } = boot()
    await index.deliver()
    clock.nowMs = index.nextMs() ?? clock.nowMs
  }
  expect(removed).toEqual(['bob g1'])
  expect(alarms.length).toBeGreaterThan(0)
  expect(boot().index.nextMs()).toBeUndefined()
})

test('removes expired grants, and all grants of a destroyed sandbox', async () => {
  const { store, index, give, removed, failures } = open()
  give('g1', 'bob', NOW - 1)
  give('g2', 'eve')
  expect(store.sharing.removeExpiredGrants(NOW)).toEqual(['g1'])
  failures.left = 2
  expect(await rejectionOf(index.removeAll())).toBeInstanceOf(Error)
  await index.removeAll()
  expect(removed.toSorted()).toEqual(['bob g1', 'eve g2'])
})

test('does not remove a grant that was redeemed after a failed attempt', async () => {
  const { store, index, give, clock, removed, failures } = open()
  give('g1')
  failures.left = 1
  await index.remove('bob', 'g1')
  store.sharing.bindGrant('g1', { account: 'bob', name: 'Bob' })
  clock.nowMs += 1_000
  await index.deliver()
  expect(removed).toEqual([])
  expect(index.nextMs()).toBeUndefined()
})

let sandboxes: FakeSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  control = await startControl({
    runner: sandboxes,
    config: { limits: UNLIMITED, alarmMs: 200 },
    // The first attempts fail, as if the revocation was broken off.
    alter: (script) => {
      const part = /removeHeldGrant\(grant\d*\) \{/
      if (!part.test(script)) throw new Error('Control has no removeHeldGrant')
      return script.replace(
        part,
        (found) =>
          `${found} if ((globalThis.removals = (globalThis.removals ?? 0) + 1) <= 2) return { ok: false, code: 'internal', message: '' };`,
      )
    },
  })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

test('(threat T6) a guest is signed out although its revocation was broken off', async () => {
  const owner = new ApiClient(control, TOKEN)
  const sandbox = textIn(await owner.post('/api/sandboxes', { name: 'dev', start: false }), 'id')
  const made = await owner.post('/api/grants', { sandbox, role: 'collaborator' })
  const redeem = { link: linkIn(made), name: 'Gus' }
  const redeemed = await new ApiClient(control, undefined).post('/api/grants/redeem', redeem)
  const guest = new ApiClient(control, textIn(redeemed, 'token'))
  expect((await guest.get('/api/whoami')).status).toBe(200)
  expect((await owner.delete(`/api/grants/${textIn(made, 'grant')}`)).status).toBe(204)
  await eventually(async () => codeIn(await guest.get('/api/whoami')) === '401 unauthorized', {
    what: 'the guest to be signed out',
  })
})
