import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { ReadBudget } from '../../src/versions/read-budget.ts'

const MiB = 1024 ** 2

function open() {
  const clock = { nowMs: 1_000_000 }
  const budget = new ReadBudget(() => clock.nowMs)
  const read = (account: string, bytes: number): Promise<string> =>
    budget.run(account, async (charge) => {
      charge(bytes)
      return 'read'
    })
  return { clock, budget, read }
}

test('(threat T50) an account that read large versions waits before it reads another, and no other account does', async () => {
  const { clock, read } = open()
  expect(await read('eve', 40 * MiB)).toBe('read')
  expect(await rejectionOf(read('eve', 1))).toMatchObject({ code: 'rate_limited', retryAfterMs: 16_000 })
  expect(await read('ada', 1)).toBe('read')
  clock.nowMs += 16_000
  expect(await read('eve', 1)).toBe('read')
})

test('requests for small versions are not refused', async () => {
  const { read } = open()
  for (let at = 0; at < 500; at += 1) expect(await read('ada', 10 * 1024)).toBe('read')
})

test('(threat T50) requests that an account sends at once are read one after the other, as far as the budget goes', async () => {
  const { budget } = open()
  let running = 0
  const one = (): Promise<string> =>
    budget.run('eve', async (charge) => {
      running += 1
      expect(running).toBe(1)
      await Promise.resolve()
      charge(4 * MiB)
      running -= 1
      return 'read'
    })
  const results = await Promise.allSettled(Array.from({ length: 8 }, one))
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
})
