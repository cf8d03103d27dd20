import { expect, test } from 'bun:test'
import { type ServerSentEvent, toEventStream } from './event-stream.ts'

/** A source that returns the given events, then waits or ends. */
function sourceOf(events: readonly ServerSentEvent[], ends: boolean) {
  const queue = [...events]
  let closed = 0
  return {
    next: (): Promise<ServerSentEvent | undefined> =>
      queue.length > 0 || ends ? Promise.resolve(queue.shift()) : new Promise(() => undefined),
    close: () => {
      closed += 1
    },
    closed: () => closed,
  }
}

test('starts at once and writes each event', async () => {
  const source = sourceOf(
    [
      { event: 'ready', data: { folders: 2 } },
      { event: 'change', data: { paths: [{ path: 'a\n\u2028b', kind: 'created' }] } },
    ],
    true,
  )
  expect(await new Response(toEventStream(source)).text()).toBe(
    ':\n\n' +
      'event: ready\ndata: {"folders":2}\n\n' +
      'event: change\ndata: {"paths":[{"path":"a\\n\u2028b","kind":"created"}]}\n\n',
  )
  expect(source.closed()).toBe(1)
})

test('sends heartbeats and closes the source when the stream is canceled', async () => {
  const source = sourceOf([], false)
  const reader = toEventStream(source, 1).getReader()
  for (let count = 0; count < 3; count += 1)
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(':\n\n')
  await reader.cancel()
  expect(source.closed()).toBe(1)
})
