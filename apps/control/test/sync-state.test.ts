import { describe, expect, test } from 'bun:test'
import {
  IDLE,
  MAX_DELAY_MS,
  nextSyncMs,
  QUIET_MS,
  stepSync,
  type SyncEvent,
  type SyncState,
} from '../src/versions/sync-state.ts'

/** Steps through events at given times; returns the kinds, with `!` where a save begins. */
function run(events: readonly (readonly [number, SyncEvent])[], start: SyncState = IDLE): string[] {
  let state = start
  return events.map(([nowMs, event]) => {
    const step = stepSync(state, event, nowMs)
    state = step.state
    return state.kind + (step.saves ? '!' : '')
  })
}

const changed = { type: 'changed' } as const
const tick = { type: 'tick' } as const
const flush = { type: 'flush' } as const
const saved = { type: 'saved', tookMs: 100 } as const
const failed = { type: 'failed' } as const

describe('the sync state', () => {
  test('saves after a quiet moment', () => {
    expect(
      run([
        [0, changed],
        [1_000, tick],
        [QUIET_MS, tick],
        [2_500, saved],
      ]),
    ).toEqual(['pending', 'pending', 'syncing!', 'idle'])
  })

  test('is not kept from a save by scans that are due', () => {
    const unknown = { type: 'unknown' } as const
    expect(
      run([
        [0, unknown],
        [1_500, unknown],
        [QUIET_MS, unknown],
        [QUIET_MS, tick],
        [2_100, unknown],
        [2_500, saved],
      ]),
    ).toEqual(['pending', 'pending', 'pending', 'syncing!', 'syncing', 'idle'])
  })

  test('saves at the latest ten seconds after the first change', () => {
    const changes = Array.from({ length: 10 }, (_, at) => [at * 1_000, changed] as const)
    expect(run([...changes, [MAX_DELAY_MS - 1, tick], [MAX_DELAY_MS, tick]]).slice(-2)).toEqual([
      'pending',
      'syncing!',
    ])
  })

  test('saves again what changed during a save, after a rest of eight times its length', () => {
    let { state } = stepSync(IDLE, changed, 0)
    state = stepSync(state, tick, QUIET_MS).state
    state = stepSync(state, changed, 2_100).state
    state = stepSync(state, { type: 'saved', tookMs: 3_000 }, 5_000).state
    expect(state.kind).toBe('pending')
    expect(nextSyncMs(state)).toBe(5_000 + 24_000)
  })

  test('flushes at once from every state, after a save in progress', () => {
    expect(run([[0, flush]])).toEqual(['flushing!'])
    expect(
      run([
        [0, changed],
        [1, flush],
      ]),
    ).toEqual(['pending', 'flushing!'])
    expect(
      run([
        [0, changed],
        [QUIET_MS, tick],
        [2_001, flush],
        [3_000, saved],
      ]),
    ).toEqual(['pending', 'syncing!', 'syncing', 'flushing!'])
    expect(
      run([
        [0, flush],
        [1, failed],
        [2, flush],
      ]),
    ).toEqual(['flushing!', 'retrying', 'flushing!'])
  })

  test('retries three times with back-off, and then by the alarm', () => {
    const times: (number | undefined)[] = []
    let { state } = stepSync(IDLE, flush, 0)
    for (const atMs of [0, 1_000, 3_000]) {
      state = stepSync(state, failed, atMs).state
      times.push(nextSyncMs(state))
      const next = stepSync(state, tick, nextSyncMs(state) ?? 0)
      expect(next.saves).toBe(true)
      if (state.kind === 'retrying') state = next.state
    }
    expect(times).toEqual([1_000, 3_000, 63_000])
    expect(state.kind).toBe('error')
    expect(
      run(
        [
          [100_000, tick],
          [100_001, saved],
        ],
        state,
      ),
    ).toEqual(['syncing!', 'idle'])
  })

  test('never forgets a change, in 1,000 random histories', () => {
    for (let seed = 1; seed <= 1_000; seed += 1) {
      let random = seed
      const next = (bound: number): number => {
        random = (random * 1_103_515_245 + 12_345) % 2_147_483_648
        return random % bound
      }
      let state: SyncState = IDLE
      let nowMs = 0
      let isSaving = false
      /** Whether something changed that no save that began later has covered. */
      let unsaved = false
      let covered = false
      const apply = (event: SyncEvent): void => {
        const step = stepSync(state, event, nowMs)
        state = step.state
        if (!step.saves) return
        expect(isSaving).toBe(false)
        isSaving = true
        covered = true
      }
      for (let at = 0; at < 60; at += 1) {
        nowMs += next(4_000)
        const choice = next(6)
        if (choice <= 1) {
          unsaved = true
          covered = false
          apply(changed)
        } else if (choice === 2) apply(flush)
        else if (choice === 3 && isSaving) {
          isSaving = false
          if (covered) unsaved = false
          apply(saved)
        } else if (choice === 4 && isSaving) {
          isSaving = false
          apply(failed)
        } else apply(tick)
        if (unsaved && !isSaving) expect([seed, nextSyncMs(state)]).not.toEqual([seed, undefined])
      }
    }
  })
})
