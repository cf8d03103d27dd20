import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { rejectionOf } from '@sandwire/testing'
import { AuditStore } from '../src/account/audit-store.ts'
import { AccountStore } from '../src/account/store.ts'
import { AuditSampling } from '../src/audit/sampling.ts'
import type { AuditEntry } from '../src/audit/entry.ts'
import { SCOPES } from '../src/auth/identity.ts'
import { AuditLog, BATCH_SIZE, DROP_COUNT_MS, MAX_PENDING_OF } from '../src/sandbox/audit-log.ts'
import { SandboxStore } from '../src/sandbox/store.ts'
import { sqlOf } from './support/bun-sql.ts'

const NOW = 1_800_000_000_000
const ID = '0'.repeat(32)
const call = (requestId: string, identity = 'owner') => ({
  identity,
  name: identity,
  scopes: SCOPES,
  address: '192.0.2.7',
  requestId,
})

/** Entries of the owner that can wait. */
const MAX_PENDING = MAX_PENDING_OF.activity.owner

type Delivery = 'arrives' | 'is lost' | 'arrives without confirmation'

/** A sandbox and its owner's account; `boot` recreates the sandbox's object. */
function open() {
  const database = new Database(':memory:')
  const accountDatabase = new Database(':memory:')
  new AccountStore(sqlOf(accountDatabase))
  const account = new AuditStore(sqlOf(accountDatabase))
  const deliveries: Delivery[] = []
  const clock = { nowMs: NOW }
  const lost: string[] = []
  let alarms = 0
  let ids = 0
  const send = async (owner: string, entries: readonly AuditEntry[]): Promise<void> => {
    const delivery = deliveries.shift() ?? 'arrives'
    if (delivery !== 'is lost') account.add(entries, owner, clock.nowMs)
    if (delivery !== 'arrives') throw new Error('No answer')
  }
  const boot = () => {
    const store = new SandboxStore(sqlOf(database))
    const audit = new AuditLog({
      store,
      send,
      nowMs: () => clock.nowMs,
      wakeBy: async () => void (alarms += 1),
      deliverSoon: () => undefined,
      log: {
        warn: () => undefined,
        error: (_, fields) => void lost.push(fields?.request_id ?? ''),
      },
      mintId: () => `drop-${(ids += 1)}`,
    })
    return { store, audit }
  }
  const first = boot()
  first.store.insert({
    id: ID,
    owner: 'owner',
    name: 'dev',
    createdMs: 1,
    lastActivityMs: 1,
    state: { kind: 'stopped' },
    settings: {
      network: {
        policy: 'none',
        allow: [],
      },
      limits: DEFAULT_SANDBOX_LIMITS,
      env: {},
    },
  })
  const write = async (audit: AuditLog, requestId: string, identity?: string): Promise<void> => {
    const context = audit.contextOf(call(requestId, identity))
    if (context !== undefined) await audit.record(call(requestId, identity), { action: 'exec' }, context)
  }
  const rows = () => account.page({ limit: 5_000 }, clock.nowMs).rows
  return { ...first, database, lost, boot, deliveries, clock, write, rows, alarms: () => alarms }
}

/** Gives an account a grant. */
function grantTo(store: SandboxStore, account: string): void {
  store.sharing.insertGrant(
    {
      id: `${ID}.${account}`,
      role: 'viewer',
      label: '',
      createdMs: NOW,
      expiresMs: NOW + 864e5,
      ownerName: 'owner',
      holder: {
        account,
        name: account,
      },
    },
    undefined,
  )
}

test('delivers an entry once, however often a delivery fails, and after a crash', async () => {
  const { audit, boot, deliveries, write, rows, alarms } = open()
  deliveries.push('is lost', 'arrives without confirmation', 'is lost', 'arrives without confirmation')
  for (const id of ['a', 'b']) await write(audit, id)
  expect(alarms()).toBe(2)
  for (let attempt = 0; attempt < 4; attempt += 1) {
    // The object is recreated after each attempt, so that only stored data counts.
    expect(await rejectionOf(boot().audit.flush())).toBeInstanceOf(Error)
    await write(boot().audit, `after-${attempt}`)
  }
  const { audit: last, store } = boot()
  await last.flush()
  expect(store.auditOutbox.isEmpty).toBe(true)
  const got = rows().map(({ requestId }) => requestId)
  expect(got.toSorted()).toEqual(['a', 'after-0', 'after-1', 'after-2', 'after-3', 'b'])
})

test('does not duplicate an entry that is recorded again after its delivery', async () => {
  const { audit, write, rows } = open()
  await write(audit, 'a')
  await audit.flush()
  await write(audit, 'a')
  await audit.flush()
  expect(rows()).toHaveLength(1)
})

test('keeps an entry that is recorded while a batch is being sent', async () => {
  const { store, audit, write, rows } = open()
  for (let index = 0; index < BATCH_SIZE + 5; index += 1) await write(audit, `r${index}`)
  const flushed = audit.flush()
  await write(audit, 'meanwhile')
  await flushed
  await audit.flush()
  expect(rows()).toHaveLength(BATCH_SIZE + 6)
  expect(store.auditOutbox.isEmpty).toBe(true)
})

test('counts the entries that a full queue refuses, and reports the count once', async () => {
  const { audit, boot, deliveries, clock, write, rows } = open()
  for (let index = 0; index < MAX_PENDING + 7; index += 1) await write(audit, `r${index}`)
  deliveries.push('is lost')
  expect(await rejectionOf(audit.flush())).toBeInstanceOf(Error)
  await boot().audit.flush()
  expect(rows()).toHaveLength(MAX_PENDING)
  clock.nowMs += DROP_COUNT_MS
  deliveries.push('arrives without confirmation')
  expect(await rejectionOf(boot().audit.flush())).toBeInstanceOf(Error)
  await boot().audit.flush()
  const dropped = rows().filter(({ action }) => action === 'audit.dropped')
  expect(dropped).toMatchObject([{ dropped: 7, sandbox: ID, actor: 'owner' }])
  expect(rows()).toHaveLength(MAX_PENDING + 1)
  expect(rows().filter(({ requestId }) => requestId === `r${MAX_PENDING}`)).toHaveLength(0)
})

test('does not change a count that may have been delivered', async () => {
  const { audit, store, boot, clock, deliveries, write, rows } = open()
  for (let index = 0; index < MAX_PENDING + 1; index += 1) await write(audit, `r${index}`)
  // All batches are confirmed but the last one, which contains the count.
  deliveries.push(...Array.from({ length: MAX_PENDING / BATCH_SIZE }, () => 'arrives' as const))
  deliveries.push('arrives without confirmation')
  clock.nowMs += DROP_COUNT_MS
  expect(await rejectionOf(audit.flush())).toBeInstanceOf(Error)
  expect(rows().filter(({ action }) => action === 'audit.dropped')).toMatchObject([{ dropped: 1 }])
  for (let index = 0; index < MAX_PENDING + 2; index += 1) await write(boot().audit, `s${index}`)
  clock.nowMs += DROP_COUNT_MS
  await boot().audit.flush()
  const counts = rows().map(({ dropped }) => dropped ?? 0)
  const reported = counts.reduce((sum, count) => sum + count, 0)
  expect(rows().length - counts.filter((count) => count > 0).length + reported).toBe(2 * MAX_PENDING + 3)
  expect(store.auditOutbox.isEmpty).toBe(true)
})

test('(threat T50) reserves queue space for entries of the owner', async () => {
  const { audit, store, clock, write, rows } = open()
  for (const account of ['bob', 'eve', 'mallory', 'trent']) grantTo(store, account)
  for (const account of ['bob', 'eve', 'mallory', 'trent'])
    for (let index = 0; index < 300; index += 1) await write(audit, `${account}${index}`, account)
  for (let index = 0; index < 100; index += 1) await write(audit, `own${index}`)
  await audit.flush()
  expect(rows().filter(({ actor }) => actor === 'owner')).toHaveLength(100)
  clock.nowMs += DROP_COUNT_MS
  await audit.flush()
  expect(rows().filter(({ action }) => action === 'audit.dropped')).toHaveLength(3)
})

test('(threat T50) limits the rows of a busy account and reports one count a minute', async () => {
  const { audit, store, clock, write, rows } = open()
  grantTo(store, 'bob')
  for (let index = 0; index < 2_000; index += 1) {
    await write(audit, `r${index}`, 'bob')
    if (index % 10 === 0) await audit.flush()
  }
  expect(rows()).toHaveLength(300)
  clock.nowMs += DROP_COUNT_MS
  await audit.flush()
  expect(rows().filter(({ action }) => action === 'audit.dropped')).toMatchObject([
    { actor: 'bob', actorName: 'bob', dropped: 1_700 },
  ])
  for (let index = 0; index < 500; index += 1) await write(audit, `own${index}`)
  await audit.flush()
  expect(rows().filter(({ actor }) => actor === 'owner')).toHaveLength(500)
})

test('records no request that changed nothing', async () => {
  const { audit, store, rows } = open()
  const details = (value: string | undefined) => ({
    action: 'grant.redeem' as const,
    hasChanged: value !== 'same',
  })
  await audit.audited(call('a'), details, () => 'same')
  expect(store.auditOutbox.isEmpty).toBe(true)
  await audit.audited(call('b'), details, () => 'other')
  await audit.flush()
  expect(rows()).toHaveLength(1)
})

test('records nothing for an account without access', async () => {
  const { audit, store, write } = open()
  await write(audit, 'a', 'eve')
  expect(store.auditOutbox.isEmpty).toBe(true)
})

test('(threat T50) limits the rows of refused requests per actor', () => {
  const sampling = new AuditSampling()
  const refused = { actor: 'guest', action: 'sandbox.stop', outcome: 'refused' } as const
  const admitted = (row: Parameters<AuditSampling['admits']>[0], fromMs: number, isOwner = false): number =>
    Array.from({ length: 1_000 }, (_, index) => sampling.admits(row, isOwner, fromMs + index / 1_000)).filter(
      Boolean,
    ).length
  expect(admitted(refused, NOW)).toBe(60)
  expect(admitted({ ...refused, action: 'output.read', outcome: 'allowed' }, NOW + 1_000)).toBe(0)
  // Other actors and other actions have their own limits.
  expect(admitted({ ...refused, actor: 'other' }, NOW)).toBe(60)
  expect(admitted({ actor: 'guest', action: 'exec', outcome: 'allowed' }, NOW)).toBe(300)
  expect(admitted({ actor: 'guest', action: 'sandbox.start', outcome: 'allowed' }, NOW)).toBe(0)
  // So have rows that are relevant to security.
  expect(admitted({ actor: 'guest', action: 'grant.leave', outcome: 'allowed' }, NOW)).toBe(300)
  expect(admitted({ ...refused, action: 'grant.create' }, NOW)).toBe(60)
  expect(admitted({ actor: 'owner', action: 'exec', outcome: 'allowed' }, NOW, true)).toBe(1_000)
  // Changes of files are too many even of the owner.
  expect(admitted({ actor: 'owner', action: 'file.write', outcome: 'allowed' }, NOW, true)).toBe(300)
  expect(sampling.admits(refused, false, NOW + 20_000)).toBe(true)
})

test('counts the rows that sampling drops', async () => {
  const { audit, clock, rows } = open()
  for (let index = 0; index < 70; index += 1) {
    const context = audit.contextOf(call('x'))
    if (context === undefined) throw new Error('There is a sandbox')
    await audit.record(call(`r${index}`), { action: 'sandbox.stop' }, context, 'forbidden')
  }
  clock.nowMs += DROP_COUNT_MS
  await audit.flush()
  expect(rows().filter(({ outcome }) => outcome === 'refused')).toHaveLength(60)
  expect(rows().filter(({ action }) => action === 'audit.dropped')).toMatchObject([{ dropped: 10 }])
})

test('(threat T50) reserves queue space for entries that are relevant to security', async () => {
  const { audit, store, rows } = open()
  grantTo(store, 'bob')
  const record = async (
    requestId: string,
    identity: string,
    action: 'exec' | 'grant.leave',
  ): Promise<void> => {
    const context = audit.contextOf(call(requestId, identity))
    if (context !== undefined) await audit.record(call(requestId, identity), { action }, context)
  }
  for (let index = 0; index < MAX_PENDING + 50; index += 1) await record(`r${index}`, 'owner', 'exec')
  await record('bob', 'bob', 'grant.leave')
  await record('own', 'owner', 'grant.leave')
  await audit.flush()
  const leaves = rows().filter(({ action }) => action === 'grant.leave')
  expect(leaves.map(({ actor }) => actor).toSorted()).toEqual(['bob', 'owner'])
})

test('records events that the Worker dropped, if the account has access', async () => {
  const { audit, store, clock, rows } = open()
  grantTo(store, 'bob')
  await audit.recordDropped(call('a', 'bob'), { dropped: 4, sinceMs: NOW - 5 })
  await audit.recordDropped(call('b', 'bob'), { dropped: 3, sinceMs: NOW + 5 })
  await audit.recordDropped(call('c', 'eve'), { dropped: 9, sinceMs: NOW })
  clock.nowMs += DROP_COUNT_MS
  await audit.flush()
  expect(rows()).toMatchObject([
    { action: 'audit.dropped', actor: 'bob', dropped: 7, droppedSinceMs: NOW - 5, atMs: clock.nowMs },
  ])
})

test('logs an entry that is lost because the disk is full, and records the gap later', async () => {
  const { audit, database, lost, write, store, clock, rows } = open()
  database.run(
    "CREATE TRIGGER full BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'disk: SQLITE_FULL'); END",
  )
  await write(audit, 'a')
  expect(lost).toEqual(['a'])
  database.run('DROP TRIGGER full')
  await write(audit, 'b')
  expect(lost).toEqual(['a'])
  expect(store.auditOutbox.isEmpty).toBe(false)
  clock.nowMs += DROP_COUNT_MS
  await audit.flush()
  const gaps = rows().filter(({ action }) => action === 'audit.dropped')
  expect(gaps).toMatchObject([{ actor: 'owner', dropped: 1, droppedSinceMs: NOW }])
})

test('fails on any other storage error', async () => {
  const { audit, database, write } = open()
  database.run("CREATE TRIGGER bad BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'broken'); END")
  expect(await rejectionOf(write(audit, 'a'))).toBeInstanceOf(Error)
})

test('delivers the last entry before the sandbox is deleted', async () => {
  const { audit, deliveries, write, rows, store } = open()
  await write(audit, 'a')
  deliveries.push('is lost')
  expect(await rejectionOf(audit.recordDestroyed(call('end'), audit.contextOf(call('end'))))).toBeInstanceOf(
    Error,
  )
  await audit.recordDestroyed(call('end'), audit.contextOf(call('end')))
  expect(store.auditOutbox.isEmpty).toBe(true)
  expect(rows().map(({ action }) => action)).toEqual(['sandbox.destroy', 'exec'])
})
