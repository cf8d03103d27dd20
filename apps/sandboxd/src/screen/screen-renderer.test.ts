import { afterAll, expect, test } from 'bun:test'
import { ScreenRenderer } from './screen-renderer.ts'

const workers: Worker[] = []
const renderer = new ScreenRenderer(() => {
  const worker = new Worker(new URL('./screen-worker.ts', import.meta.url).href)
  workers.push(worker)
  return worker
})
afterAll(() => {
  for (const worker of workers) worker.terminate()
})

function flood(lines: number): Uint8Array {
  return new TextEncoder().encode(`${'x'.repeat(78)}\r\n`.repeat(lines))
}

test('closing a screen settles its pending requests', async () => {
  const screen = renderer.open(80, 24)
  await screen.feed(flood(6_000))
  const held = screen.feed(flood(100))
  const rendering = screen.render()
  screen.close()
  await held
  expect(await rendering).toBeUndefined()
})

test('a closed screen ignores requests and settles at once', async () => {
  const screen = renderer.open(80, 24)
  screen.close()
  screen.resize(90, 30)
  await screen.feed(flood(1))
  expect(await screen.render()).toBeUndefined()
})

test('screens of one thread are independent', async () => {
  const [one, other] = [renderer.open(80, 24), renderer.open(80, 24)]
  await Promise.all([
    one.feed(new TextEncoder().encode('one')),
    other.feed(new TextEncoder().encode('other')),
  ])
  one.close()
  expect(new TextDecoder().decode((await other.render())?.bytes)).toContain('other')
  other.close()
})
