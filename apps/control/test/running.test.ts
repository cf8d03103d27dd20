import { expect, test } from 'bun:test'
import { askEachRunning, compareWithRunning } from '../src/providers/running.ts'

const running = { id: 'a', state: 'running' } as const
const stopped = { id: 'b', state: 'stopped' } as const

test('a list asks sandboxes whose state contradicts the provider, which is asked once a second', async () => {
  let nowMs = 5_000
  let asked = 0
  const find = compareWithRunning(
    async () => {
      asked += 1
      return new Set(['b'])
    },
    () => nowMs,
  )
  const isOutdated = await find('r')
  expect([running, stopped, { id: 'c', state: 'creating' } as const].map(isOutdated)).toEqual([
    true,
    true,
    false,
  ])
  await find('r')
  expect(asked).toBe(1)
  nowMs += 1_000
  await find('r')
  expect(asked).toBe(2)
})

test('a list keeps what it has while the provider does not answer', async () => {
  const find = compareWithRunning(
    () => Promise.reject(new Error('down')),
    () => 0,
  )
  expect((await find('r'))(running)).toBe(false)
})

test('a list asks every running container, each once a second', async () => {
  let nowMs = 5_000
  const isOutdated = await askEachRunning(() => nowMs)('r')
  expect([running, stopped, running].map(isOutdated)).toEqual([true, false, false])
  expect(isOutdated({ ...running, id: 'c' })).toBe(true)
  nowMs += 1_000
  expect(isOutdated(running)).toBe(true)
})
