import { expect, test } from 'bun:test'
import { watchNetwork } from './network-watch.ts'

test('probes the server when the browser goes offline or online, until stopped', () => {
  const target = new EventTarget()
  const asked: number[] = []
  const stop = watchNetwork(target, (withinMs) => asked.push(withinMs))
  target.dispatchEvent(new Event('offline'))
  target.dispatchEvent(new Event('online'))
  expect(asked).toEqual([500, 3_000])
  stop()
  target.dispatchEvent(new Event('offline'))
  expect(asked).toHaveLength(2)
})
