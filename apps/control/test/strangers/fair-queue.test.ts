import { describe, expect, test } from 'bun:test'
import {
  type Caller,
  FairQueue,
  MAX_RUNNING_OF_CALLER,
  MAX_WAITING_OF_CALLER,
  RUN_MS,
  type Turn,
} from '../../src/http/fair-queue.ts'
import { costOf } from '../../src/http/request-cost.ts'

const account = (key: string): Caller => ({ group: 'account', key })
const stranger = (key: string): Caller => ({ group: 'anonymous', key })

/** Enters this many requests of a caller at time 0. */
function enter(queue: FairQueue, caller: Caller, count: number, cost = 1): Turn[] {
  return Array.from({ length: count }, () => queue.enter(caller, cost, 0)).filter(
    (turn) => turn !== undefined,
  )
}

const running = (turns: readonly Turn[]): number => turns.filter(({ isWaiting }) => !isWaiting).length

describe('FairQueue', () => {
  test('runs a few requests of a caller at once and those of others beside them', () => {
    const queue = new FairQueue()
    const eve = enter(queue, account('eve'), 100)
    expect(running(eve)).toBe(MAX_RUNNING_OF_CALLER)
    expect(running(enter(queue, account('ada'), 1))).toBe(1)
  })

  test('counts cost: an expensive request runs alone among those of its caller', () => {
    const queue = new FairQueue()
    const eve = enter(queue, account('eve'), 3, 100)
    expect(eve.map(({ isWaiting }) => isWaiting)).toEqual([false, true, true])
    expect(running(enter(queue, account('ada'), 1))).toBe(1)
  })

  test('runs the requests of a caller in order', () => {
    const queue = new FairQueue()
    const turns = enter(queue, account('eve'), 2 * MAX_RUNNING_OF_CALLER)
    const [first] = turns
    if (first !== undefined) queue.leave(first, 1)
    expect(turns.findIndex(({ isWaiting }) => isWaiting)).toBe(MAX_RUNNING_OF_CALLER + 1)
  })

  test('lets callers take turns when everything is in use', () => {
    const queue = new FairQueue()
    const floods = Array.from({ length: 10 }, (_, index) => enter(queue, account(`eve-${index}`), 50))
    const [ada] = enter(queue, account('ada'), 1)
    let left = 0
    for (const turn of floods.flat().filter(({ isWaiting }) => !isWaiting)) {
      queue.leave(turn, 1)
      left += 1
      if (ada?.isWaiting === false) break
    }
    // One request of each caller that already waited runs before.
    expect(left).toBeLessThanOrEqual(floods.length + 1)
  })

  test('gives strangers, however many addresses they have, one turn for each turn of accounts', () => {
    const queue = new FairQueue()
    const flood = Array.from({ length: 1_000 }, (_, index) => enter(queue, stranger(`${index}`), 1)).flat()
    const [ada] = enter(queue, account('ada'), 1)
    expect(ada?.isWaiting).toBe(true)
    for (const turn of flood.slice(0, 2)) queue.leave(turn, 1)
    expect(ada?.isWaiting).toBe(false)
  })

  test('refuses a caller of which too many wait, and no other', () => {
    const queue = new FairQueue()
    const turns = enter(queue, account('eve'), 1_000)
    expect(turns).toHaveLength(MAX_RUNNING_OF_CALLER + MAX_WAITING_OF_CALLER)
    expect(queue.enter(account('ada'), 1, 0)?.isWaiting).toBe(false)
  })

  test('no longer counts requests that take long or were canceled', () => {
    const queue = new FairQueue()
    const turns = enter(queue, account('eve'), 3 * MAX_RUNNING_OF_CALLER)
    queue.poll(RUN_MS - 1)
    expect(running(turns)).toBe(MAX_RUNNING_OF_CALLER)
    queue.poll(RUN_MS)
    expect(running(turns)).toBe(2 * MAX_RUNNING_OF_CALLER)
  })

  test('skips a request that stopped waiting', () => {
    const queue = new FairQueue()
    const turns = enter(queue, account('eve'), MAX_RUNNING_OF_CALLER + 2)
    const [canceled, next] = turns.slice(MAX_RUNNING_OF_CALLER)
    if (canceled !== undefined) queue.leave(canceled, 0)
    queue.poll(RUN_MS)
    expect([canceled?.isWaiting, next?.isWaiting]).toEqual([true, false])
  })

  test('resolves the promise of a request that may run', async () => {
    const queue = new FairQueue()
    const turns = enter(queue, account('eve'), MAX_RUNNING_OF_CALLER + 1)
    queue.poll(RUN_MS)
    await turns.at(-1)?.admitted
    expect(running(turns)).toBe(MAX_RUNNING_OF_CALLER + 1)
  })
})

test('the cost of a request grows with what it reads', () => {
  const cost = (path: string): number => costOf({ url: `http://h${path}` })
  expect(cost('/api/whoami')).toBe(1)
  expect(cost('/api/audit')).toBeLessThan(cost('/api/audit?limit=500'))
  expect(cost('/api/audit?limit=100')).toBeLessThan(cost('/api/audit?limit=100&action=exec'))
  expect(cost('/logs/dev')).toBeLessThan(cost('/logs/dev?bytes=1000000'))
  expect(cost('/logs/dev?bytes=999999999999')).toBeLessThanOrEqual(20)
  for (const bad of ['-1', 'x', '1e999', '']) expect(cost(`/logs/dev?bytes=${bad}`)).toBe(cost('/logs/dev'))
  expect(cost('/api/runs?limit=1')).toBeLessThan(cost('/api/runs'))
  expect(cost('/api/runs/abc')).toBe(1)
  expect(cost('/api/runs/abc/events?limit=10')).toBeLessThan(cost('/api/runs/abc/events'))
  expect(cost('/api/sandboxes/dev')).toBeLessThan(cost('/api/sandboxes/dev/checkpoints'))
  expect(cost('/api/account/sessions')).toBeGreaterThan(cost('/api/account/sessions/abc'))
})
