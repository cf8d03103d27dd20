import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { OutboxDelivery } from '../src/outbox/delivery.ts'
import { Outbox, OUTBOX_SCHEMA } from '../src/outbox/outbox.ts'
import { dueInMs, isDue, isEscalationDue, type OutboxPolicy, retryDelayMs } from '../src/outbox/policy.ts'
import { sqlOf } from './support/bun-sql.ts'

const HOUR_MS = 60 * 60 * 1000
const POLICY: OutboxPolicy = {
  queue: 'test',
  order: 'fifo',
  batchSize: 1,
  initialDelayMs: 0,
  firstRetryMs: 500,
  maxRetryMs: 60_000,
  maxPending: 3,
  overflow: 'refuse',
  onDuplicate: 'keep',
}

function open(change: Partial<OutboxPolicy> = {}, database = new Database(':memory:')) {
  const sql = sqlOf(database)
  if (sql.exec("SELECT name FROM sqlite_master WHERE name = 'outbox'").toArray().length === 0)
    for (const statement of OUTBOX_SCHEMA) sql.exec(statement)
  const exec = (query: string, ...bindings: (string | number | null)[]) =>
    sql.exec(query, ...bindings).toArray()
  const outbox = new Outbox(exec, { ...POLICY, ...change })
  const clock = { nowMs: 0 }
  const sent: string[] = []
  const failing = new Set<string>()
  const alarms: number[] = []
  const delivery = new OutboxDelivery({
    outbox,
    nowMs: () => clock.nowMs,
    wakeBy: async (atMs) => void alarms.push(atMs),
    send: async (batch) => {
      sent.push(batch.map(({ key }) => key).join('+'))
      if (failing.has(batch[0].destination)) throw new Error('no answer')
    },
  })
  const enqueue = (destination: string, key: string, body = key) =>
    outbox.enqueue({ destination, key, body }, clock.nowMs)
  return { outbox, clock, sent, failing, alarms, delivery, enqueue }
}

describe('retry delays', () => {
  const message = {
    seq: 1,
    destination: 'a',
    key: 'k',
    body: '',
    queuedMs: 10_000,
    attempts: 1,
    nextMs: 10_500,
    isEscalated: false,
  }
  const policy = { ...POLICY, escalateAfter: { ms: 3_000, attempts: 5 } }

  test('double up to a maximum', () => {
    expect([1, 2, 3, 20].map((attempts) => retryDelayMs(attempts, POLICY))).toEqual([
      500, 1_000, 2_000, 60_000,
    ])
  })

  test('are never longer than the back-off when the clock was set back', () => {
    expect(dueInMs(message, policy, 10_000)).toBe(500)
    expect(dueInMs(message, policy, 10_000 - HOUR_MS)).toBe(500)
    expect(isDue(message, POLICY, 10_499)).toBe(false)
    expect(isDue(message, POLICY, 10_500)).toBe(true)
    expect(isDue(message, POLICY, 10_000 - HOUR_MS)).toBe(true)
  })

  test('end in an escalation after a time or a number of attempts, once', () => {
    expect(isEscalationDue(message, policy, 12_999)).toBe(false)
    expect(isEscalationDue(message, policy, 13_000)).toBe(true)
    expect(isEscalationDue(message, policy, 10_000 - HOUR_MS)).toBe(true)
    expect(isEscalationDue({ ...message, isEscalated: true }, policy, 20_000)).toBe(false)
    expect(isEscalationDue({ ...message, attempts: 5 }, policy, 10_001)).toBe(true)
    expect(dueInMs({ ...message, attempts: 9, nextMs: 99_000 }, policy, 12_900)).toBe(100)
  })
})

test('delivers in order per destination and retries the first message of a destination that failed', async () => {
  const { outbox, clock, sent, failing, alarms, delivery, enqueue } = open()
  failing.add('b')
  for (const [destination, key] of [
    ['a', 'a1'],
    ['b', 'b1'],
    ['b', 'b2'],
  ] as const)
    expect(enqueue(destination, key)).toBe(true)
  expect(await delivery.deliver()).toHaveLength(1)
  expect(sent).toEqual(['a1', 'b1'])
  expect(alarms).toEqual([500])
  expect(outbox.nextMs(0)).toBe(500)
  clock.nowMs = 499
  await delivery.deliver()
  expect(sent).toEqual(['a1', 'b1'])
  clock.nowMs = 500
  failing.clear()
  expect(await delivery.deliver()).toEqual([])
  expect(sent).toEqual(['a1', 'b1', 'b1', 'b2'])
  expect(outbox.isEmpty).toBe(true)
  expect(outbox.nextMs(500)).toBeUndefined()
})

test('sends a new message without waiting for the back-off of an earlier one', async () => {
  const { clock, sent, failing, delivery, enqueue } = open()
  failing.add('a')
  enqueue('a', 'a1')
  await delivery.deliver()
  clock.nowMs = 100
  failing.clear()
  enqueue('a', 'a2')
  await delivery.deliver()
  expect(sent).toEqual(['a1', 'a1', 'a2'])
})

test('sleeps before a retry in memory, and a newer attempt replaces the sleep', async () => {
  const { outbox, clock } = open()
  const wakes: (() => void)[] = []
  let attempts = 0
  const delivery = new OutboxDelivery({
    outbox,
    nowMs: () => clock.nowMs,
    wakeBy: () => Promise.reject(new Error('Not needed')),
    send: async () => {
      attempts += 1
      throw new Error('no answer')
    },
    sleepInMemory: {
      maxSleepMs: 10_000,
      sleep: () => new Promise<void>((resolve) => void wakes.push(resolve)),
    },
  })
  const wake = async (index: number): Promise<void> => {
    wakes[index]?.()
    await new Promise((resolve) => setTimeout(resolve, 0))
  }
  outbox.enqueue({ destination: 'a', key: 'a1', body: 'a1' }, 0)
  await delivery.deliver()
  await delivery.deliver({ force: true })
  expect([attempts, wakes.length]).toEqual([2, 2])
  await wake(0)
  expect(attempts).toBe(2)
  await wake(1)
  expect(attempts).toBe(3)
})

test('sends messages queued during a delivery in the same run', async () => {
  const { sent, delivery, enqueue } = open({ maxPending: 10 })
  enqueue('a', 'a1')
  const first = delivery.deliver()
  enqueue('a', 'a2')
  await Promise.all([first, delivery.deliver()])
  expect(sent).toEqual(['a1', 'a2'])
})

test('sends batches', async () => {
  const { sent, delivery, enqueue } = open({ batchSize: 2 })
  for (const key of ['a1', 'a2', 'a3']) enqueue('a', key)
  await delivery.deliver()
  expect(sent).toEqual(['a1+a2', 'a3'])
})

test('keeps messages and attempts when the object is recreated', async () => {
  const database = new Database(':memory:')
  const first = open({}, database)
  first.failing.add('a')
  first.enqueue('a', 'a1')
  await first.delivery.deliver()
  const second = open({}, database)
  expect(second.outbox.pending()).toMatchObject([{ key: 'a1', attempts: 1, nextMs: 500 }])
  await second.delivery.deliver({ force: true })
  expect(second.sent).toEqual(['a1'])
  expect(second.outbox.isEmpty).toBe(true)
})

test('keeps one message per key, or restarts it under a new number', () => {
  const kept = open()
  kept.enqueue('a', 'k', 'one')
  kept.enqueue('a', 'k', 'two')
  expect(kept.outbox.pending()).toMatchObject([{ seq: 1, body: 'one' }])
  const restarted = open({ onDuplicate: 'restart' })
  restarted.enqueue('a', 'k', 'one')
  const [first] = restarted.outbox.pending()
  if (first === undefined) throw new Error('nothing is pending')
  restarted.outbox.fail([first], 0)
  restarted.clock.nowMs = 10
  restarted.enqueue('a', 'k', 'one')
  // Queued since the first enqueue, so that restarts do not delay an escalation.
  expect(restarted.outbox.pending()).toMatchObject([{ seq: 2, attempts: 0, queuedMs: 0, nextMs: 10 }])
  restarted.outbox.confirm([first])
  expect(restarted.outbox.pending()).toHaveLength(1)
  restarted.outbox.markEscalated(2)
  restarted.enqueue('a', 'k', 'one')
  expect(restarted.outbox.pending()).toMatchObject([{ seq: 3, queuedMs: 10, isEscalated: false }])
})

describe('a full queue', () => {
  test('refuses messages', () => {
    const { outbox, enqueue } = open()
    expect(['k1', 'k2', 'k3', 'k4', 'k1'].map((key) => enqueue('a', key))).toEqual([
      true,
      true,
      true,
      false,
      true,
    ])
    expect(outbox.count).toBe(3)
  })

  test('moves its oldest messages to the dead letters', () => {
    const { outbox, enqueue } = open({ overflow: 'dead_letter_oldest' })
    for (let index = 0; index < 110; index += 1) enqueue('a', `k${index}`)
    expect(outbox.pending().map(({ key }) => key)).toEqual(['k107', 'k108', 'k109'])
    expect(outbox.deadLetters()).toHaveLength(100)
    expect(outbox.deadLetters()[0]).toEqual({ destination: 'a', key: 'k7', body: 'k7', attempts: 0 })
  })

  test('drops escalated messages only', () => {
    const { outbox, enqueue } = open({ overflow: 'drop_escalated', order: 'none' })
    for (let index = 0; index < 5; index += 1) enqueue('', `k${index}`)
    expect(outbox.count).toBe(5)
    outbox.markEscalated(5)
    enqueue('', 'k5')
    expect(outbox.pending().map(({ key }) => key)).toEqual(['k3', 'k4', 'k5'])
  })
})

test('moves a message to the dead letters after its last attempt, and goes on with the next', async () => {
  const { outbox, clock, sent, failing, delivery, enqueue } = open({
    deadLetterAfter: { ms: 0, attempts: 2 },
  })
  failing.add('a')
  enqueue('a', 'a1')
  enqueue('a', 'a2')
  await delivery.deliver()
  clock.nowMs = 500
  await delivery.deliver()
  expect(outbox.deadLetters()).toEqual([{ destination: 'a', key: 'a1', body: 'a1', attempts: 2 }])
  failing.clear()
  clock.nowMs = HOUR_MS
  await delivery.deliver()
  expect(sent).toEqual(['a1', 'a1', 'a2'])
})

test('queues dead letters again, after what is pending', async () => {
  const { outbox, failing, delivery, enqueue } = open({ deadLetterAfter: { ms: 0, attempts: 1 } })
  failing.add('a')
  enqueue('a', 'a1')
  await delivery.deliver()
  failing.clear()
  enqueue('a', 'a2')
  expect(outbox.replayDeadLetters(0)).toBe(1)
  expect(outbox.deadLetters()).toEqual([])
  expect(outbox.pending().map(({ key }) => key)).toEqual(['a2', 'a1'])
  await delivery.deliver({ force: true })
  expect(outbox.isEmpty).toBe(true)
})

test('queues of one table do not see each other', () => {
  const database = new Database(':memory:')
  const one = open({}, database)
  const other = open({ queue: 'other' }, database)
  one.enqueue('a', 'k')
  expect(other.outbox.isEmpty).toBe(true)
  expect(other.enqueue('a', 'k')).toBe(true)
  other.outbox.confirm([other.outbox.pending()[0] ?? expect.unreachable()])
  expect(one.outbox.count).toBe(1)
})
