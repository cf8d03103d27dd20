import { expect, test } from 'bun:test'
import { toEventStream } from './watch-service.ts'
import type { Notice } from './change-notices.ts'

/** A watch that returns the given notices, then waits or ends. */
function watching(notices: readonly Notice[], ends: boolean) {
  const queue = [...notices]
  let closed = 0
  return {
    next: (): Promise<Notice | undefined> =>
      queue.length > 0 || ends ? Promise.resolve(queue.shift()) : new Promise(() => undefined),
    close: () => {
      closed += 1
    },
    closed: () => closed,
  }
}

test('starts at once and writes an event for each notice', async () => {
  const source = watching(
    [
      { kind: 'ready', folders: 2 },
      { kind: 'overflow', reason: 'queue' },
      { kind: 'change', changes: [{ path: 'a\n\u2028b', kind: 'created' }] },
    ],
    true,
  )
  expect(await new Response(toEventStream(source)).text()).toBe(
    ':\n\n' +
      'event: ready\ndata: {"folders":2}\n\n' +
      'event: overflow\ndata: {"reason":"queue"}\n\n' +
      'event: change\ndata: {"paths":[{"path":"a\\n\u2028b","kind":"created"}]}\n\n',
  )
  expect(source.closed()).toBe(1)
})

test('sends heartbeats and closes the watch when the stream is canceled', async () => {
  const source = watching([], false)
  const reader = toEventStream(source, 1).getReader()
  for (let count = 0; count < 3; count += 1)
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(':\n\n')
  await reader.cancel()
  expect(source.closed()).toBe(1)
})
