import { expect, test } from 'bun:test'
import { ChangeBatch, type ChangeKind, NoticeQueue } from './change-notices.ts'

const LIMITS = { quietMs: 1, maxWaitMs: 5, maxPaths: 2 }

function open(): NoticeQueue {
  return new NoticeQueue(LIMITS, () => performance.now())
}

test('sends ready first, then overflows, then merged changes', async () => {
  const notices = open()
  const first = notices.next()
  notices.add({ path: 'a', kind: 'created' })
  notices.add({ path: 'b', kind: 'created' })
  notices.overflow('queue')
  notices.ready(7)
  expect(await first).toEqual({ kind: 'ready', folders: 7 })
  expect(await notices.next()).toEqual({ kind: 'overflow', reason: 'queue' })
  expect(await notices.next()).toEqual({
    kind: 'change',
    changes: [
      { path: 'a', kind: 'created' },
      { path: 'b', kind: 'created' },
    ],
  })
})

test('a client that reads nothing gets an overflow', async () => {
  const notices = open()
  notices.ready(1)
  await notices.next()
  for (let count = 0; count < 100_000; count += 1) notices.add({ path: String(count), kind: 'changed' })
  expect(await notices.next()).toEqual({ kind: 'overflow', reason: 'changes' })
})

test('sends queued notices before the end', async () => {
  const notices = open()
  notices.ready(1)
  notices.add({ path: 'a', kind: 'removed' })
  notices.end()
  notices.add({ path: 'b', kind: 'removed' })
  expect(await notices.next()).toMatchObject({ kind: 'ready' })
  expect(await notices.next()).toEqual({ kind: 'change', changes: [{ path: 'a', kind: 'removed' }] })
  expect(await notices.next()).toBeUndefined()
})

test('the end resolves a pending next()', async () => {
  const notices = open()
  notices.ready(1)
  await notices.next()
  const waiting = notices.next()
  notices.end()
  expect(await waiting).toBeUndefined()
})

const BATCH_LIMITS = { quietMs: 50, maxWaitMs: 500, maxPaths: 3 }

test.each<[ChangeKind[], ChangeKind | undefined]>([
  [['created'], 'created'],
  [['created', 'changed', 'changed'], 'created'],
  [['created', 'removed'], undefined],
  [['created', 'removed', 'created'], 'created'],
  [['changed', 'removed'], 'removed'],
  [['removed', 'created'], 'changed'],
  [['removed', 'created', 'removed'], 'removed'],
  [['changed', 'created'], 'changed'],
])('merges changes of one path: %p', (kinds, expected) => {
  const batch = new ChangeBatch(BATCH_LIMITS)
  for (const kind of kinds) batch.add({ path: 'x', kind }, 0)
  expect(batch.take()).toEqual(expected === undefined ? [] : [{ path: 'x', kind: expected }])
  expect(batch.take()).toEqual([])
})

test('is due after a quiet period or the maximum wait', () => {
  const batch = new ChangeBatch(BATCH_LIMITS)
  expect(batch.dueMs(0)).toBeUndefined()
  batch.add({ path: 'x', kind: 'changed' }, 1_000)
  expect(batch.dueMs(1_000)).toBe(50)
  for (let nowMs = 1_000; nowMs <= 1_480; nowMs += 40) batch.add({ path: 'x', kind: 'changed' }, nowMs)
  expect(batch.dueMs(1_480)).toBe(20)
  expect(batch.dueMs(2_000)).toBe(0)
  batch.take()
  expect(batch.dueMs(2_000)).toBeUndefined()
})

test('drops a batch with too many changes', () => {
  const batch = new ChangeBatch(BATCH_LIMITS)
  for (const path of ['a', 'b', 'c']) expect(batch.add({ path, kind: 'changed' }, 0)).toBe(true)
  expect(batch.add({ path: 'd', kind: 'changed' }, 0)).toBe(false)
  expect(batch.dueMs(0)).toBeUndefined()
})

test('reports the latest change last', () => {
  const batch = new ChangeBatch(BATCH_LIMITS)
  for (const path of ['a', 'b', 'a']) batch.add({ path, kind: 'changed' }, 0)
  expect(batch.take().map(({ path }) => path)).toEqual(['b', 'a'])
})
