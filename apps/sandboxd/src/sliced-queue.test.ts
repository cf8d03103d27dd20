import { expect, test } from 'bun:test'
import { SlicedQueue } from './sliced-queue.ts'

/** Resolves in a later turn of the event loop. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('runs tasks in order, in later turns, until the time of a turn is used up', async () => {
  let nowMs = 0
  const queue = new SlicedQueue(() => nowMs)
  const ran: number[] = []
  for (const task of [1, 2, 3, 4, 5])
    queue.push(() => {
      ran.push(task)
      nowMs += 1
    })
  expect(ran).toEqual([])
  await nextTurn()
  expect(ran).toEqual([1, 2])
  await nextTurn()
  expect(ran).toEqual([1, 2, 3, 4])
  await nextTurn()
  expect(ran).toEqual([1, 2, 3, 4, 5])
  queue.push(() => ran.push(6))
  await nextTurn()
  expect(ran).toEqual([1, 2, 3, 4, 5, 6])
})

test('runs tasks that a task adds', async () => {
  const queue = new SlicedQueue(() => 0)
  const ran: string[] = []
  queue.push(() => {
    ran.push('first')
    queue.push(() => ran.push('second'))
  })
  await nextTurn()
  expect(ran).toEqual(['first', 'second'])
})
