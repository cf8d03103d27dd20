import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import {
  AUDIT_LIFE_MS,
  type AuditRow,
  AuditStore,
  MAX_ROWS,
  MAX_SUMMARIES,
  PRUNED_AT_ONCE,
} from '../src/account/audit-store.ts'
import { AccountStore } from '../src/account/store.ts'
import { type Action, classOf } from '../src/audit/actions.ts'
import { type AuditEntry, cleanField, commandName } from '../src/audit/entry.ts'
import { sqlOf } from './support/bun-sql.ts'

const NOW = 1_800_000_000_000
const OWNER = 'local'

function entry(changes: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: crypto.randomUUID(),
    atMs: NOW,
    actor: 'local',
    actorName: 'Ada',
    action: 'session.start',
    address: '192.0.2.1',
    outcome: 'allowed',
    requestId: 'r',
    ...changes,
  }
}

function open() {
  const database = new Database(':memory:')
  // Creates the tables.
  const account = new AccountStore(sqlOf(database))
  const store = new AuditStore(sqlOf(database))
  const count = (): number => Number(database.query('SELECT COUNT(*) AS n FROM audit').values()[0]?.[0])
  return { account, database, store, count }
}

/** Inserts rows that differ only in their number, bypassing the store. */
function fill(
  database: Database,
  count: number,
  atMs: number,
  actor = 'local',
  action: Action = 'exec',
): void {
  database.run(
    `INSERT INTO audit (id, class, at_ms, actor, actor_name, action, address, outcome, request_id)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     SELECT ? || i || '-' || ?, ?, ?, ?, '', ?, '', 'allowed', 'r' FROM n`,
    [count, `${actor} ${action} `, atMs, classOf(action), atMs, actor, action],
  )
  database.run("INSERT INTO audit_row_counts VALUES (?, ?, ?, 'allowed', ?)", [
    classOf(action),
    actor,
    action,
    count,
  ])
}

test('stores an entry that is delivered twice once', () => {
  const { store, count } = open()
  const once = entry({ id: 'a', code: 'forbidden', outcome: 'refused' })
  store.add([once, once, entry({ id: 'b' })], OWNER, NOW)
  store.add([once], OWNER, NOW + 1)
  expect(count()).toBe(2)
})

test('stores a late refusal beside the allowed request and keeps both', () => {
  const { store } = open()
  const join = { id: 'r1.session.join', requestId: 'r1', action: 'session.join', sandbox: 's1' } as const
  store.add([entry({ ...join, actor: 'bob', session: 's1.x' })], OWNER, NOW)
  store.add([entry({ id: 'r2.exec', requestId: 'r2', action: 'exec', sandbox: 's1' })], OWNER, NOW)
  const refusals = [
    { requestId: 'r1', code: 'forbidden' },
    { requestId: 'r2', code: 'command_not_found' },
    { requestId: 'invented', code: 'forbidden' },
  ] as const
  store.addRefusals('s1', refusals, OWNER, NOW + 1)
  store.addRefusals('s1', refusals, OWNER, NOW + 2)
  expect(store.page({ limit: 10 }, NOW + 2).rows).toMatchObject([
    { requestId: 'r2', outcome: 'allowed', code: 'command_not_found', atMs: NOW + 1 },
    { requestId: 'r1', outcome: 'refused', code: 'forbidden', actor: 'bob', session: 's1.x', atMs: NOW + 1 },
    { requestId: 'r2', outcome: 'allowed', code: null, atMs: NOW },
    { requestId: 'r1', outcome: 'allowed', code: null, atMs: NOW },
  ])
})

test('accepts late refusals only of attaches to the reporting sandbox', () => {
  const { store, count } = open()
  store.add([entry({ id: 'r1.session.join', requestId: 'r1', sandbox: 's1' })], OWNER, NOW)
  store.add([entry({ id: 'r2.sandbox.stop', requestId: 'r2', sandbox: 's2' })], OWNER, NOW)
  store.add(
    [entry({ id: 'r3.session.join', requestId: 'r3', sandbox: 's2', outcome: 'refused' })],
    OWNER,
    NOW,
  )
  const refusals = ['r1', 'r2', 'r3', 'r1.session.join'].map((requestId) => ({
    requestId,
    code: 'forbidden' as const,
  }))
  store.addRefusals('s2', refusals, OWNER, NOW)
  expect(count()).toBe(3)
})

test('returns rows newest first, in pages, each once', () => {
  const { store } = open()
  // Two with the same time, and one that is delivered late.
  for (const [id, atMs] of Object.entries({ a: 10, b: 20, c: 20, d: 30, e: 5 }))
    store.add([entry({ id, requestId: id, atMs: NOW + atMs })], OWNER, NOW)
  const seen: string[] = []
  let before: string | null = null
  do {
    const page = store.page({ limit: 2, ...(before === null ? {} : { before }) }, NOW)
    seen.push(...page.rows.map(({ requestId }) => requestId))
    before = page.next
  } while (before !== null)
  expect(seen).toEqual(['d', 'c', 'b', 'a', 'e'])
})

test('filters rows by sandbox id and name, action and time', () => {
  const { store } = open()
  store.add(
    [
      entry({ requestId: '1', sandbox: 's1', sandboxName: 'dev', action: 'exec' }),
      entry({ requestId: '2', sandbox: 's2', sandboxName: 'dev', atMs: NOW + 1 }),
      entry({ requestId: '3', atMs: NOW + 2, action: 'signin' }),
    ],
    OWNER,
    NOW,
  )
  const found = (query: object): string =>
    store
      .page({ limit: 10, ...query }, NOW)
      .rows.map(({ requestId }) => requestId)
      .join('')
  expect(found({})).toBe('321')
  expect(found({ sandbox: 's1' })).toBe('1')
  expect(found({ sandbox: 'dev' })).toBe('21')
  expect(found({ action: 'signin' })).toBe('3')
  expect(found({ sinceMs: NOW + 1 })).toBe('32')
  expect(found({ sandbox: 'dev', action: 'exec', sinceMs: NOW + 1 })).toBe('')
})

/** Adds this many batches of rows of one account through the store. */
function pour(store: AuditStore, actor: string, batches: number, changes: Partial<AuditEntry> = {}): void {
  for (let batch = 0; batch < batches; batch += 1)
    store.add(
      Array.from({ length: 100 }, () => entry({ atMs: NOW + 1, actor, ...changes })),
      OWNER,
      NOW,
    )
}

/** Rows that say that others are missing. */
function gapsOf(store: AuditStore): readonly AuditRow[] {
  const rows: AuditRow[] = []
  let before: string | null | undefined
  while (before !== null) {
    const page = store.page({ limit: 5_000, action: 'audit.dropped', ...(before && { before }) }, NOW)
    rows.push(...page.rows)
    before = page.next
  }
  return rows
}

test('(threat T50) a page with a filter examines a bounded number of rows, and continues after them', () => {
  const { database, store } = open()
  fill(database, 1, NOW - 1, 'local', 'grant.create')
  fill(database, 20_000, NOW)
  const query = { limit: 10, action: 'grant.create' } as const
  let page = store.page(query, NOW)
  // An unbounded page would have found the row at once.
  expect(page.rows).toEqual([])
  let pages = 1
  while (page.rows.length === 0 && page.next !== null) {
    page = store.page({ ...query, before: page.next }, NOW)
    pages += 1
  }
  expect(page).toMatchObject({ rows: [{ action: 'grant.create' }], next: null })
  expect(pages).toBe(5)
})

test('keeps at most 50,000 rows of activity of the owner, removes the oldest and counts them in a row', () => {
  const { database, store } = open()
  fill(database, MAX_ROWS.activity, NOW)
  pour(store, OWNER, 30, { action: 'exec' })
  const [kept] = database.query("SELECT COUNT(*), MIN(seq) FROM audit WHERE action = 'exec'").values()
  const rows = Number(kept?.[0])
  expect(rows).toBeLessThanOrEqual(MAX_ROWS.activity)
  expect(rows).toBeGreaterThan(MAX_ROWS.activity - PRUNED_AT_ONCE)
  const dropped = MAX_ROWS.activity + 3_000 - rows
  expect(kept?.[1]).toBe(dropped + 1)
  expect(gapsOf(store)).toMatchObject([{ actor: OWNER, dropped, droppedSinceMs: NOW, atMs: NOW }])
})

test('(threat T50) a flood of requests evicts no row that is relevant to security, and leaves a row', () => {
  const { database, store } = open()
  const evidence: readonly Action[] = [
    'signin',
    'grant.create',
    'grant.revoke',
    'ticket.create',
    'sandbox.destroy',
  ]
  fill(database, MAX_ROWS.activity, NOW)
  store.add(
    [
      ...evidence.map((action) => entry({ action, id: action, requestId: 'evidence' })),
      entry({ action: 'exec', outcome: 'refused', code: 'ceiling_exceeded', requestId: 'evidence' }),
    ],
    OWNER,
    NOW,
  )
  pour(store, OWNER, 10, { action: 'exec' })
  const kept = database.query("SELECT action FROM audit WHERE request_id = 'evidence' ORDER BY seq").values()
  expect(kept.flat()).toEqual([...evidence, 'exec'])
  expect(gapsOf(store)).toMatchObject([{ actor: OWNER, dropped: 1_000 }])
  expect(store.page({ limit: 10, sandbox: 'any' }, NOW).rows).toMatchObject([{ action: 'audit.dropped' }])
})

test('(threat T50) a flood of one action evicts only rows of that action and outcome', () => {
  const { database, store } = open()
  const kinds = () =>
    database
      .query(
        "SELECT action, outcome, COUNT(*) FROM audit WHERE class = 'security' GROUP BY action, outcome ORDER BY action, outcome",
      )
      .values()
  fill(database, MAX_ROWS.security - 2, NOW, OWNER, 'signin')
  store.add([entry({ action: 'grant.revoke' }), entry({ action: 'ticket.create' })], OWNER, NOW)
  pour(store, OWNER, 3, { action: 'ticket.create', outcome: 'refused' })
  expect(kinds()).toEqual([
    ['grant.revoke', 'allowed', 1],
    ['signin', 'allowed', MAX_ROWS.security - 2 - PRUNED_AT_ONCE],
    ['ticket.create', 'allowed', 1],
    ['ticket.create', 'refused', 300],
  ])
})

test('(threat T50) an account that fills the audit evicts only its own rows', () => {
  const { database, store } = open()
  const rowsOf = (actor: string): number =>
    Number(
      database
        .query("SELECT COUNT(*) FROM audit WHERE actor = ? AND class = 'activity'")
        .values(actor)[0]?.[0],
    )
  const max = MAX_ROWS.activity
  fill(database, max, NOW, OWNER)
  fill(database, 40, NOW, 'bob')
  fill(database, max - 40, NOW, 'mallory')
  pour(store, 'mallory', 20)
  expect([OWNER, 'bob'].map(rowsOf)).toEqual([max, 40])
  expect(rowsOf('mallory')).toBeLessThanOrEqual(max - 40)
  // An account with few rows evicts rows of the account with the most.
  pour(store, 'bob', 10)
  expect([OWNER, 'bob'].map(rowsOf)).toEqual([max, 1_040])
  // Two accounts with equally many rows are evicted equally.
  fill(database, rowsOf('mallory'), NOW, 'eve')
  const later = new AuditStore(sqlOf(database))
  for (let part = 0; part < 200; part += 1) later.add([], OWNER, NOW)
  expect([OWNER, 'bob'].map(rowsOf)).toEqual([max, 1_040])
  expect(rowsOf('mallory')).toBe(rowsOf('eve'))
  expect(rowsOf('mallory') + rowsOf('eve') + rowsOf('bob')).toBeLessThanOrEqual(max)
  const summaries = gapsOf(later).map(({ actor }) => actor)
  expect(summaries.toSorted()).toEqual(['eve', 'mallory'])
})

test('merges counts of dropped rows without losing any, and bounds their number', () => {
  const { store, count } = open()
  const batches = 30
  for (let batch = 0; batch < batches; batch += 1)
    store.add(
      Array.from({ length: 100 }, (_, index) =>
        entry({ actor: `guest-${batch * 100 + index}`, action: 'audit.dropped', dropped: 2, atMs: NOW }),
      ),
      OWNER,
      NOW,
    )
  expect(count()).toBeLessThanOrEqual(MAX_ROWS.gap + MAX_SUMMARIES + 1)
  const total = gapsOf(store).reduce((sum, { dropped }) => sum + (dropped ?? 0), 0)
  expect(total).toBe(batches * 100 * 2)
})

test('keeps row counts exact with duplicates and expired rows', () => {
  const { database, store } = open()
  const once = entry({ id: 'a', actor: 'bob' })
  store.add([once, once, entry(), entry({ actor: 'eve', atMs: NOW + 5 })], OWNER, NOW)
  store.add([once], OWNER, NOW)
  const rowCounts = () => database.query('SELECT actor, rows FROM audit_row_counts ORDER BY actor').values()
  expect(rowCounts()).toEqual([
    ['bob', 1],
    ['eve', 1],
    ['local', 1],
  ])
  store.prune(NOW + AUDIT_LIFE_MS)
  expect(rowCounts()).toEqual([['eve', 1]])
})

test('removes a large backlog in bounded parts', () => {
  const { database, store, count } = open()
  fill(database, 2_000, NOW - AUDIT_LIFE_MS)
  store.prune(NOW)
  expect(count()).toBe(1_500)
  for (let part = 0; part < 3; part += 1) store.prune(NOW)
  expect(count()).toBe(0)
})

test('hides rows after 90 days and removes them', () => {
  const { store, count } = open()
  store.add([entry({ requestId: 'old' })], OWNER, NOW)
  const shown = (nowMs: number): number => store.page({ limit: 10 }, nowMs).rows.length
  expect(store.nextExpiryMs).toBe(NOW + AUDIT_LIFE_MS)
  expect(shown(NOW + AUDIT_LIFE_MS - 1)).toBe(1)
  expect(shown(NOW + AUDIT_LIFE_MS)).toBe(0)
  store.prune(NOW + AUDIT_LIFE_MS - 1)
  expect(count()).toBe(1)
  store.prune(NOW + AUDIT_LIFE_MS)
  expect(count()).toBe(0)
  expect(store.nextExpiryMs).toBeUndefined()
})

const EVIL = 'a\r\n{"level":"error"}\u001B[2J\u0000\u009B31m\u202E\u2028\u2066b\uD800'

test('(threat T36) removes line breaks, escapes and bidi controls from texts and bounds their length', () => {
  const { store } = open()
  const texts = ['actor', 'actorName', 'sandbox', 'sandboxName', 'session', 'grant', 'address'] as const
  const more = ['code', 'template', 'command', 'login', 'requestId'] as const
  for (const field of [...texts, ...more]) {
    store.add([entry({ [field]: EVIL })], OWNER, NOW)
    store.add([entry({ [field]: 'x'.repeat(100_000) })], OWNER, NOW)
  }
  for (const row of store.page({ limit: 100 }, NOW).rows)
    for (const value of Object.values(row)) {
      expect(String(value)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      expect(String(value).length).toBeLessThanOrEqual(256)
    }
  expect(cleanField(EVIL)).toBe('a {"level":"error"} [2J 31m b ')
})

test('stores only the name of a command', () => {
  expect(commandName('/home/me/secret-project/bin/run')).toBe('run')
  expect(commandName('bash')).toBe('bash')
  expect(commandName('/bin/')).toBe('')
})
