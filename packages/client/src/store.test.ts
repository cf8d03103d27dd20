import { expect, test } from 'bun:test'
import { createStore } from './store.ts'

test('a store notifies its listeners of every change until they unsubscribe', () => {
  const store = createStore(1)
  const seen: number[] = []
  const leave = store.subscribe((value) => seen.push(value))
  store.set(2)
  leave()
  store.set(3)
  expect(seen).toEqual([2])
  expect(store.get()).toBe(3)
})
