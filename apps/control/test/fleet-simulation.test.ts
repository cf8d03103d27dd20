// Simulates a fleet of sandboxes over a working day with the real lifecycle steps: wake-ups and writes of the objects.

import { beforeAll, describe, expect, test } from 'bun:test'
import { backOffMs } from '@sandwire/protocol'
import { Random } from '@sandwire/testing'
import { drive, eventsOf } from './support/fleet/drive.ts'
import { type FleetSettings, ModelSandbox } from './support/fleet/model-sandbox.ts'
import { RealSandbox } from './support/fleet/real-sandbox.ts'
import { addTally, emptyTally, type Tally } from './support/fleet/tally.ts'
import { drawVisits } from './support/fleet/visits.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 8 * HOUR_MS
const SEED = 5
/** Files survive a stop. */
const IDLE_STOP: FleetSettings = { sleepAfterMs: 600_000, alarmMs: 30_000 }
/** Files do not survive, so idle sandboxes are not stopped. */
const NO_IDLE_STOP: FleetSettings = { sleepAfterMs: null, alarmMs: 30_000 }
const ALARMS_PER_HOUR = HOUR_MS / IDLE_STOP.alarmMs
/** Two deployments, each of which closes every connection; after the second there is an outage. */
const DEPLOYMENTS = [
  { atMs: 2 * HOUR_MS, awayMs: 0 },
  { atMs: 5 * HOUR_MS, awayMs: 20_000 },
]

/** Time until a client has reconnected, by its back-off. */
function backAfterMs(awayMs: number, random: Random): number {
  let waitedMs = 0
  for (let attempt = 1; waitedMs === 0 || waitedMs < awayMs; attempt++)
    waitedMs += backOffMs(attempt, random.next())
  return waitedMs
}

/** The day of one sandbox, determined by its number. */
function dayOf(number: number, untilMs: number, deployments = DEPLOYMENTS) {
  const random = new Random(SEED * 1_000_003 + number)
  const visits = drawVisits(random, untilMs)
  const disconnects = deployments.map(({ atMs, awayMs }) => ({ atMs, backMs: backAfterMs(awayMs, random) }))
  return { visits, events: eventsOf(visits, disconnects).filter(({ atMs }) => atMs < untilMs), untilMs }
}

interface Fleet {
  readonly total: Tally
  /** Total running hours. */
  readonly runningHours: number
  /** Wake-ups of all objects per second. */
  readonly perSecond: Uint32Array
}

/** Simulates the whole fleet. Checks after each step that a sandbox has an alarm in time exactly while it runs. */
function simulate(sandboxes: number, settings: FleetSettings, deployments = DEPLOYMENTS): Fleet {
  const total = emptyTally()
  const perSecond = new Uint32Array(DAY_MS / 1_000 + 1)
  for (let number = 0; number < sandboxes; number++) {
    const sandbox = new ModelSandbox(settings)
    for (const { atMs } of drive(sandbox, dayOf(number, DAY_MS, deployments))) {
      const second = Math.floor(atMs / 1_000)
      perSecond[second] = (perSecond[second] ?? 0) + 1
      const dueMs = sandbox.alarmMs
      const isRight = sandbox.isRunning
        ? dueMs !== undefined && dueMs - atMs <= settings.alarmMs
        : dueMs === undefined
      if (!isRight) throw new Error(`Sandbox ${number} of seed ${SEED} has a wrong alarm at ${atMs} ms`)
    }
    sandbox.finish(DAY_MS)
    addTally(total, sandbox.tally)
  }
  return { total, runningHours: total.runningMs / HOUR_MS, perSecond }
}

describe('the model of a sandbox', () => {
  test.each([
    ['with an idle stop', IDLE_STOP],
    ['without an idle stop', NO_IDLE_STOP],
  ])('has as many alarms and writes as the real one, %s', async (_, settings) => {
    for (let number = 0; number < 12; number++) {
      const model = new ModelSandbox(settings)
      for (const { done } of drive(model, dayOf(number, DAY_MS))) await done
      using real = await RealSandbox.open(settings)
      for (const { done } of drive(real, dayOf(number, DAY_MS))) await done
      expect({ number, ...real.tally, runningMs: 0 }).toEqual({ number, ...model.tally, runningMs: 0 })
      expect([real.alarmMs, real.isRunning]).toEqual([model.alarmMs, model.isRunning])
    }
  })
})

describe('a hundred thousand sandboxes', () => {
  const SANDBOXES = 100_000
  /** Of the sandbox: last activity and alarm. Of the account: the sandbox and its session. */
  const ROWS_PER_ALARM = 2
  /** Start and stop, in each object. */
  const ROWS_PER_LIFE = 8

  let stormy: Fleet
  let calm: Fleet
  beforeAll(() => {
    stormy = simulate(SANDBOXES, IDLE_STOP)
    calm = simulate(SANDBOXES, IDLE_STOP, [])
  })

  test('cost alarms and writes per running hour and request, and none while stopped', () => {
    const { total, runningHours } = stormy
    expect(total.starts).toBeGreaterThan(SANDBOXES)
    expect(total.idleStops).toBeGreaterThan(SANDBOXES)
    const alarms = runningHours * ALARMS_PER_HOUR
    expect(total.wakeUps).toBeLessThanOrEqual(alarms + total.requests)
    const { starts, requests } = total
    expect(total.sandboxRows).toBeLessThanOrEqual(alarms * ROWS_PER_ALARM + starts * ROWS_PER_LIFE + requests)
    expect(total.accountRows).toBeLessThanOrEqual(alarms * ROWS_PER_ALARM + starts * ROWS_PER_LIFE)
    expect(total.reports).toBeLessThanOrEqual(alarms + starts * ROWS_PER_LIFE)
    const perHour = (count: number): string => (count / runningHours).toFixed(0)
    console.log(
      `${Math.round(runningHours)} of ${(SANDBOXES * DAY_MS) / HOUR_MS} sandbox-hours ran; per hour of them ` +
        `${perHour(total.wakeUps)} wake-ups, ${perHour(total.sandboxRows + total.accountRows)} rows`,
    )
  })

  test('that never stop by themselves cost the same per running hour', () => {
    const { total, runningHours } = simulate(SANDBOXES / 10, NO_IDLE_STOP)
    expect(total.idleStops).toBe(0)
    expect(total.wakeUps / runningHours).toBeLessThanOrEqual(ALARMS_PER_HOUR + total.requests / runningHours)
    const rows = total.sandboxRows + total.accountRows
    expect(rows / runningHours).toBeLessThanOrEqual(2 * ROWS_PER_ALARM * ALARMS_PER_HOUR * 1.05)
  })

  test('reconnect after deployments without writing a row or starting a stopped sandbox', () => {
    const joins = stormy.total.requests - calm.total.requests
    expect(joins).toBeGreaterThan(SANDBOXES / 10)
    expect(stormy.total.refusedJoins).toBeGreaterThan(joins / 10)
    const apart = { wakeUps: 0, requests: 0, refusedJoins: 0 }
    expect({ ...stormy.total, ...apart }).toEqual({ ...calm.total, ...apart })
    expect(stormy.total.wakeUps - calm.total.wakeUps).toBe(joins)
  })

  test('spread their reconnects by back-off after an outage', () => {
    const [, { atMs, awayMs } = { atMs: 0, awayMs: 0 }] = DEPLOYMENTS
    const from = Math.floor((atMs + awayMs) / 1_000)
    const storm = Array.from(
      stormy.perSecond.subarray(from, from + 30),
      (count, at) => count - (calm.perSecond[from + at] ?? 0),
    )
    const joins = storm.reduce((sum, count) => sum + count, 0)
    // Clients wait at most 10 s between attempts, so all are back by then, spread over the seconds.
    expect(storm.slice(11).every((count) => count === 0)).toBe(true)
    expect(joins).toBeGreaterThan(SANDBOXES / 10)
    expect(Math.max(...storm)).toBeLessThan(joins / 4)
  })
})
