import { Database } from 'bun:sqlite'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { expect, test } from 'bun:test'
import { AccountStore } from '../src/account/store.ts'
import type { SandboxView } from '../src/sandbox/record.ts'
import type { SessionFacts } from '../src/sandbox/session-view.ts'
import { sqlOf } from './support/bun-sql.ts'

const open = (): AccountStore => new AccountStore(sqlOf(new Database(':memory:')))

function view(id: string, name: string): SandboxView {
  return {
    id,
    name,
    state: 'running',
    reason: null,
    createdMs: 1,
    startedMs: 1,
    lastActivityMs: 1,
    sleepAfterSeconds: null,
    ephemeral: false,
    saved: null,
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: [],
  }
}

function session(id: string): SessionFacts {
  return {
    id,
    state: 'running',
    mode: 'pipe',
    cmd: 'cat',
    attachments: 0,
    people: [],
    createdMs: null,
    lastInputMs: null,
    lastOutputMs: null,
    keepSeconds: 60,
    output: { start: 0, end: 0 },
    pinned: false,
    exit: null,
  }
}

test('a name resolves to one sandbox until that is removed', () => {
  const store = open()
  store.insertSandbox('a', 'dev')
  expect(store.idOf('dev')).toBe('a')
  expect(() => store.insertSandbox('b', 'dev')).toThrow()
  store.removeSandbox('a')
  expect(store.idOf('dev')).toBeUndefined()
  store.insertSandbox('b', 'dev')
  expect(store.usage().all.count).toBe(1)
})

test('a report replaces the stored state of one sandbox and of no other', () => {
  const store = open()
  store.insertSandbox('a', 'one')
  store.insertSandbox('b', 'two')
  store.setView(view('a', 'one'))
  store.setSessions('a', [session('a.1'), session('a.2')])
  store.setSessions('b', [session('b.1')])
  store.setSessions('a', [session('a.3')])
  expect(store.sessions().map(({ id, sandboxName }) => [id, sandboxName])).toEqual([
    ['a.3', 'one'],
    ['b.1', 'two'],
  ])
  store.removeSandbox('b')
  expect(store.sessions()).toHaveLength(1)
})

test('a report after the removal of a sandbox is ignored', () => {
  const store = open()
  store.setView(view('a', 'one'))
  store.setSessions('a', [session('a.1')])
  expect(store.sandboxes()).toEqual([])
  expect(store.sessions()).toEqual([])
})

test("the sessions of a sandbox are found without reading the others'", () => {
  const database = new Database(':memory:')
  new AccountStore(sqlOf(database))
  const plan = database
    .query<{ detail: string }, []>("EXPLAIN QUERY PLAN SELECT id, facts FROM sessions WHERE sandbox = 'a'")
    .all()
  expect(plan.map(({ detail }) => detail)).toEqual([expect.stringMatching(/^SEARCH sessions USING INDEX/)])
})
