import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { rejectionOf } from '@sandwire/testing'
import { AuditStore } from '../src/account/audit-store.ts'
import { AccountStore } from '../src/account/store.ts'
import { Chatter } from '../src/audit/chatter.ts'
import type { AuditEntry } from '../src/audit/entry.ts'
import { SCOPES } from '../src/auth/identity.ts'
import { BATCH, DROPS_GATHER_MS, MAX_WAITING } from '../src/sandbox/audit-outbox.ts'
import { AuditTrail } from '../src/sandbox/audit-trail.ts'
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

type Post = 'arrives' | 'is lost' | 'arrives but nobody hears of it'

/** A sandbox and its owner's account; the sandbox's object can be killed and started again. */
function open() {
  const database = new Database(':memory:')
  const accountDatabase = new Database(':memory:')
  new AccountStore(sqlOf(accountDatabase))
  const account = new AuditStore(sqlOf(accountDatabase))
  const post: Post[] = []
  const clock = { nowMs: NOW }
  const lost: string[] = []
  let wakes = 0
  let ids = 0
  const deliver = async (owner: string, entries: readonly AuditEntry[]): Promise<void> => {
    const fate = post.shift() ?? 'arrives'
    if (fate !== 'is lost') account.add(entries, owner, clock.nowMs)
    if (fate !== 'arrives') throw new Error('No answer')
  }
  const boot = () => {
    const store = new SandboxStore(sqlOf(database))
    const trail = new AuditTrail({
      store,
      deliver,
      nowMs: () => clock.nowMs,
      wake: async () => void (wakes += 1),
      soon: () => undefined,
      log: {
        warn: () => undefined,
        error: (_, fields) => void lost.push(fields?.request_id ?? ''),
      },
      mintId: () => `drop-${(ids += 1)}`,
    })
    return { store, trail }
  }
  const first = boot()
  first.store.insert({
    id: ID,
    owner: 'owner',
    name: 'dev',
    createdMs: 1,
    lastActivityMs: 1,
    state: { is: 'stopped' },
    settings: {
      network: {
        policy: 'none',
        allow: [],
      },
      limits: DEFAULT_SANDBOX_LIMITS,
      env: {},
    },
  })
  const write = async (trail: AuditTrail, requestId: string, identity?: string): Promise<void> => {
    const scene = trail.look(call(requestId, identity))
    if (scene !== undefined) await trail.write(call(requestId, identity), { action: 'exec' }, scene)
  }
  const rows = () => account.page({ limit: 5_000 }, clock.nowMs).rows
  return { ...first, database, lost, boot, post, clock, write, rows, wakes: () => wakes }
}

/** Makes somebody known in the sandbox. */
function letIn(store: SandboxStore, account: string): void {
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

test('what was written arrives once, however often its delivery fails, and after a crash', async () => {
  const { trail, boot, post, write, rows, wakes } = open()
  post.push('is lost', 'arrives but nobody hears of it', 'is lost', 'arrives but nobody hears of it')
  for (const id of ['a', 'b']) await write(trail, id)
  expect(wakes()).toBe(2)
  for (let attempt = 0; attempt < 4; attempt += 1) {
    // Killed at once after each attempt: only what is stored is left.
    expect(await rejectionOf(boot().trail.flush())).toBeInstanceOf(Error)
    await write(boot().trail, `after-${attempt}`)
  }
  const { trail: last, store } = boot()
  await last.flush()
  expect(store.audit.isEmpty).toBe(true)
  const got = rows().map(({ requestId }) => requestId)
  expect(got.toSorted()).toEqual(['a', 'after-0', 'after-1', 'after-2', 'after-3', 'b'])
})

test('a row that is written again after it was delivered stays one', async () => {
  const { trail, write, rows } = open()
  await write(trail, 'a')
  await trail.flush()
  await write(trail, 'a')
  await trail.flush()
  expect(rows()).toHaveLength(1)
})

test('what is written while a batch is on its way is neither lost nor forgotten', async () => {
  const { store, trail, write, rows } = open()
  for (let index = 0; index < BATCH + 5; index += 1) await write(trail, `r${index}`)
  const flushed = trail.flush()
  await write(trail, 'meanwhile')
  await flushed
  await trail.flush()
  expect(rows()).toHaveLength(BATCH + 6)
  expect(store.audit.isEmpty).toBe(true)
})

test('when too many wait, later ones are counted, and the count is told once', async () => {
  const { trail, boot, post, clock, write, rows } = open()
  for (let index = 0; index < MAX_WAITING + 7; index += 1) await write(trail, `r${index}`)
  post.push('is lost')
  expect(await rejectionOf(trail.flush())).toBeInstanceOf(Error)
  await boot().trail.flush()
  expect(rows()).toHaveLength(MAX_WAITING)
  clock.nowMs += DROPS_GATHER_MS
  post.push('arrives but nobody hears of it')
  expect(await rejectionOf(boot().trail.flush())).toBeInstanceOf(Error)
  await boot().trail.flush()
  const dropped = rows().filter(({ action }) => action === 'audit.dropped')
  expect(dropped).toMatchObject([{ dropped: 7, sandbox: ID, actor: 'owner' }])
  expect(rows()).toHaveLength(MAX_WAITING + 1)
  expect(rows().filter(({ requestId }) => requestId === `r${MAX_WAITING}`)).toHaveLength(0)
})

test('a count that may have been told is not changed any more', async () => {
  const { trail, store, boot, clock, post, write, rows } = open()
  for (let index = 0; index < MAX_WAITING + 1; index += 1) await write(trail, `r${index}`)
  // All but the last batch arrive; that one, with the count in it, arrives without an answer.
  post.push(...Array.from({ length: MAX_WAITING / BATCH }, () => 'arrives' as const))
  post.push('arrives but nobody hears of it')
  clock.nowMs += DROPS_GATHER_MS
  expect(await rejectionOf(trail.flush())).toBeInstanceOf(Error)
  expect(rows().filter(({ action }) => action === 'audit.dropped')).toMatchObject([{ dropped: 1 }])
  for (let index = 0; index < MAX_WAITING + 2; index += 1) await write(boot().trail, `s${index}`)
  clock.nowMs += DROPS_GATHER_MS
  await boot().trail.flush()
  const counts = rows().map(({ dropped }) => dropped ?? 0)
  const told = counts.reduce((sum, count) => sum + count, 0)
  expect(rows().length - counts.filter((count) => count > 0).length + told).toBe(2 * MAX_WAITING + 3)
  expect(store.audit.isEmpty).toBe(true)
})

test('(threat T50) what others leave waiting keeps no row of the owner out', async () => {
  const { trail, store, clock, write, rows } = open()
  for (const account of ['bob', 'eve', 'mallory', 'trent']) letIn(store, account)
  for (const account of ['bob', 'eve', 'mallory', 'trent'])
    for (let index = 0; index < 300; index += 1) await write(trail, `${account}${index}`, account)
  for (let index = 0; index < 100; index += 1) await write(trail, `own${index}`)
  await trail.flush()
  expect(rows().filter(({ actor }) => actor === 'owner')).toHaveLength(100)
  clock.nowMs += DROPS_GATHER_MS
  await trail.flush()
  expect(rows().filter(({ action }) => action === 'audit.dropped')).toHaveLength(3)
})

test('(threat T50) a person who does a lot leaves a bounded number of rows, and one count a minute', async () => {
  const { trail, store, clock, write, rows } = open()
  letIn(store, 'bob')
  for (let index = 0; index < 2_000; index += 1) {
    await write(trail, `r${index}`, 'bob')
    if (index % 10 === 0) await trail.flush()
  }
  expect(rows()).toHaveLength(300)
  clock.nowMs += DROPS_GATHER_MS
  await trail.flush()
  expect(rows().filter(({ action }) => action === 'audit.dropped')).toMatchObject([
    { actor: 'bob', actorName: 'bob', dropped: 1_700 },
  ])
  for (let index = 0; index < 500; index += 1) await write(trail, `own${index}`)
  await trail.flush()
  expect(rows().filter(({ actor }) => actor === 'owner')).toHaveLength(500)
})

test('a deed that changed nothing leaves no row, and a refused one does', async () => {
  const { trail, store, rows } = open()
  const about = (value: string | undefined) => ({
    action: 'grant.redeem' as const,
    hasChanged: value !== 'same',
  })
  await trail.watch(call('a'), about, () => 'same')
  expect(store.audit.isEmpty).toBe(true)
  await trail.watch(call('b'), about, () => 'other')
  await trail.flush()
  expect(rows()).toHaveLength(1)
})

test('a stranger leaves no row, whatever they try', async () => {
  const { trail, store, write } = open()
  await write(trail, 'a', 'somebody')
  expect(store.audit.isEmpty).toBe(true)
})

test('(threat T50) whoever is refused over and over does not push out what others did', () => {
  const chatter = new Chatter()
  const refused = { actor: 'guest', action: 'sandbox.stop', outcome: 'refused' } as const
  const admitted = (row: Parameters<Chatter['admits']>[0], fromMs: number, isOwner = false): number =>
    Array.from({ length: 1_000 }, (_, index) => chatter.admits(row, isOwner, fromMs + index / 1_000)).filter(
      Boolean,
    ).length
  expect(admitted(refused, NOW)).toBe(60)
  expect(admitted({ ...refused, action: 'output.read', outcome: 'allowed' }, NOW + 1_000)).toBe(0)
  // Others, and what is not free, are not touched by that.
  expect(admitted({ ...refused, actor: 'other' }, NOW)).toBe(60)
  expect(admitted({ actor: 'guest', action: 'exec', outcome: 'allowed' }, NOW)).toBe(300)
  expect(admitted({ actor: 'guest', action: 'ticket.create', outcome: 'allowed' }, NOW)).toBe(0)
  expect(admitted({ actor: 'owner', action: 'exec', outcome: 'allowed' }, NOW, true)).toBe(1_000)
  expect(chatter.admits(refused, false, NOW + 20_000)).toBe(true)
})

test('rows left out because somebody is refused too often are counted', async () => {
  const { trail, clock, rows } = open()
  for (let index = 0; index < 70; index += 1) {
    const scene = trail.look(call('x'))
    if (scene === undefined) throw new Error('There is a sandbox')
    await trail.write(call(`r${index}`), { action: 'sandbox.stop' }, scene, 'forbidden')
  }
  clock.nowMs += DROPS_GATHER_MS
  await trail.flush()
  expect(rows().filter(({ outcome }) => outcome === 'refused')).toHaveLength(60)
  expect(rows().filter(({ action }) => action === 'audit.dropped')).toMatchObject([{ dropped: 10 }])
})

test('a full disk loses the row, says so, and keeps nobody out', async () => {
  const { trail, database, lost, write, store } = open()
  database.run(
    "CREATE TRIGGER full BEFORE INSERT ON audit_outbox BEGIN SELECT RAISE(ABORT, 'disk: SQLITE_FULL'); END",
  )
  await write(trail, 'a')
  expect(lost).toEqual(['a'])
  database.run('DROP TRIGGER full')
  await write(trail, 'b')
  expect(lost).toEqual(['a'])
  expect(store.audit.isEmpty).toBe(false)
})

test('any other fault of the storage is not passed over', async () => {
  const { trail, database, write } = open()
  database.run("CREATE TRIGGER bad BEFORE INSERT ON audit_outbox BEGIN SELECT RAISE(ABORT, 'broken'); END")
  expect(await rejectionOf(write(trail, 'a'))).toBeInstanceOf(Error)
})

test('a sandbox is not forgotten before its last row has arrived', async () => {
  const { trail, post, write, rows, store } = open()
  await write(trail, 'a')
  post.push('is lost')
  expect(await rejectionOf(trail.sayLast(call('end'), trail.look(call('end'))))).toBeInstanceOf(Error)
  await trail.sayLast(call('end'), trail.look(call('end')))
  expect(store.audit.isEmpty).toBe(true)
  expect(rows().map(({ action }) => action)).toEqual(['sandbox.destroy', 'exec'])
})
