import { expect, test } from 'bun:test'
import { drainBody } from './drain-body.ts'

function bodyOf(chunks: number): { request: Request; pulled: () => number } {
  let pulled = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulled += 1
        if (pulled > chunks) controller.close()
        else controller.enqueue(new Uint8Array(1000))
      },
    },
    { highWaterMark: 0 },
  )
  return { request: new Request('http://localhost/', { method: 'PUT', body }), pulled: () => pulled }
}

test('reads what is left of a body, up to a limit', async () => {
  const short = bodyOf(5)
  await drainBody(short.request)
  expect(short.pulled()).toBe(6)
  const long = bodyOf(1_000_000)
  await drainBody(long.request, { maxBytes: 10_000, timeMs: 60_000 })
  expect(long.pulled()).toBeLessThan(20)
})

test('does not wait for ever', async () => {
  const body = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) })
  await drainBody(new Request('http://localhost/', { method: 'PUT', body }), { maxBytes: 10, timeMs: 1 })
})

test('leaves a body alone that somebody else reads, or that is not there', async () => {
  const { request } = bodyOf(5)
  const reader = request.body?.getReader()
  await drainBody(request)
  await drainBody(new Request('http://localhost/'))
  expect((await reader?.read())?.value?.byteLength).toBe(1000)
})
