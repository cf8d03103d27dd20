import { expect, test } from 'bun:test'
import { Notices } from './notices.ts'

const LIMITS = { quietMs: 1, maxWaitMs: 5, maxPaths: 2 }

function open(): Notices {
  return new Notices(LIMITS, () => performance.now())
}

test('ready comes first, then what was lost, then changes together', async () => {
  const notices = open()
  const first = notices.next()
  notices.add({ path: 'a', kind: 'created' })
  notices.add({ path: 'b', kind: 'created' })
  notices.overflow('queue')
  notices.ready(7)
  expect(await first).toEqual({ kind: 'ready', folders: 7 })
  expect(await notices.next()).toEqual({ kind: 'overflow', reason: 'queue' })
  expect(await notices.next()).toEqual({
    kind: 'change',
    changes: [
      { path: 'a', kind: 'created' },
      { path: 'b', kind: 'created' },
    ],
  })
})

test('a client that takes nothing is told that it missed something', async () => {
  const notices = open()
  notices.ready(1)
  await notices.next()
  for (let count = 0; count < 100_000; count += 1) notices.add({ path: String(count), kind: 'changed' })
  expect(await notices.next()).toEqual({ kind: 'overflow', reason: 'changes' })
})

test('what is kept is told before the end', async () => {
  const notices = open()
  notices.ready(1)
  notices.add({ path: 'a', kind: 'removed' })
  notices.end()
  notices.add({ path: 'b', kind: 'removed' })
  expect(await notices.next()).toMatchObject({ kind: 'ready' })
  expect(await notices.next()).toEqual({ kind: 'change', changes: [{ path: 'a', kind: 'removed' }] })
  expect(await notices.next()).toBeUndefined()
})

test('the end reaches whoever waits', async () => {
  const notices = open()
  notices.ready(1)
  await notices.next()
  const waiting = notices.next()
  notices.end()
  expect(await waiting).toBeUndefined()
})
