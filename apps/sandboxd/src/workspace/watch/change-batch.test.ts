import { expect, test } from 'bun:test'
import { ChangeBatch, type ChangeKind } from './change-batch.ts'

const LIMITS = { quietMs: 50, maxWaitMs: 500, maxPaths: 3 }

test.each<[ChangeKind[], ChangeKind | undefined]>([
  [['created'], 'created'],
  [['created', 'changed', 'changed'], 'created'],
  [['created', 'removed'], undefined],
  [['created', 'removed', 'created'], 'created'],
  [['changed', 'removed'], 'removed'],
  [['removed', 'created'], 'changed'],
  [['removed', 'created', 'removed'], 'removed'],
  [['changed', 'created'], 'changed'],
])('what happened to one path is told once: %p', (kinds, expected) => {
  const batch = new ChangeBatch(LIMITS)
  for (const kind of kinds) batch.add({ path: 'x', kind }, 0)
  expect(batch.take()).toEqual(expected === undefined ? [] : [{ path: 'x', kind: expected }])
  expect(batch.take()).toEqual([])
})

test('it is time when nothing happens, or after long', () => {
  const batch = new ChangeBatch(LIMITS)
  expect(batch.dueMs(0)).toBeUndefined()
  batch.add({ path: 'x', kind: 'changed' }, 1_000)
  expect(batch.dueMs(1_000)).toBe(50)
  for (let nowMs = 1_000; nowMs <= 1_480; nowMs += 40) batch.add({ path: 'x', kind: 'changed' }, nowMs)
  expect(batch.dueMs(1_480)).toBe(20)
  expect(batch.dueMs(2_000)).toBe(0)
  batch.take()
  expect(batch.dueMs(2_000)).toBeUndefined()
})

test('too many changes are not kept', () => {
  const batch = new ChangeBatch(LIMITS)
  for (const path of ['a', 'b', 'c']) expect(batch.add({ path, kind: 'changed' }, 0)).toBe(true)
  expect(batch.add({ path: 'd', kind: 'changed' }, 0)).toBe(false)
  expect(batch.dueMs(0)).toBeUndefined()
})

test('what happened last is told last', () => {
  const batch = new ChangeBatch(LIMITS)
  for (const path of ['a', 'b', 'a']) batch.add({ path, kind: 'changed' }, 0)
  expect(batch.take().map(({ path }) => path)).toEqual(['b', 'a'])
})
