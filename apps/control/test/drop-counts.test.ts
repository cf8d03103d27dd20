import { expect, test } from 'bun:test'
import { type DropCount, DROP_WINDOW_MS, DropCounts } from '../src/audit/drop-counts.ts'

const NOW = 1_800_000_000_000

/** Lets all pending promises settle. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function open() {
  const clock = { nowMs: NOW }
  const recorded: (DropCount & { readonly source: string })[] = []
  const wakes: (() => void)[] = []
  const failures = { next: 0, seen: 0 }
  const drops = new DropCounts<string>({
    nowMs: () => clock.nowMs,
    sleep: () => new Promise((resolve) => wakes.push(resolve)),
    record: async (source, count) => {
      if (failures.next > 0) {
        failures.next -= 1
        throw new Error('No answer')
      }
      recorded.push({ source, ...count })
    },
    onFailure: () => void (failures.seen += 1),
  })
  const elapse = (): void => {
    clock.nowMs += DROP_WINDOW_MS
    for (const wake of wakes.splice(0)) wake()
  }
  return { drops, recorded, clock, failures, elapse }
}

test('records the first dropped event at once and the others at the end of the window', async () => {
  const { drops, recorded, elapse } = open()
  const first = drops.count('a', 'bob')
  await Promise.all(Array.from({ length: 9 }, () => drops.count('a', 'bob')))
  const other = drops.count('b', 'eve')
  await settled()
  expect(recorded.map(({ source, dropped }) => `${source} ${dropped}`)).toEqual(['bob 1', 'eve 1'])
  elapse()
  await Promise.all([first, other])
  expect(recorded.slice(2)).toEqual([{ source: 'bob', dropped: 9, sinceMs: NOW }])
})

test('keeps a count that could not be recorded for the next event', async () => {
  const { drops, recorded, failures, elapse } = open()
  failures.next = 2
  const first = drops.count('a', 'bob')
  await settled()
  elapse()
  await first
  expect([recorded.length, failures.seen]).toEqual([0, 2])
  const next = drops.count('a', 'bob')
  await settled()
  expect(recorded).toEqual([{ source: 'bob', dropped: 2, sinceMs: NOW }])
  elapse()
  await next
})

test('opens a new window if the request that would have ended the last one is gone', async () => {
  const { drops, recorded, clock } = open()
  void drops.count('a', 'bob')
  await drops.count('a', 'bob')
  clock.nowMs += 2 * DROP_WINDOW_MS
  void drops.count('a', 'bob')
  await settled()
  expect(recorded.map(({ dropped }) => dropped)).toEqual([1, 2])
})
