import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { drainBody, readJson } from './request-body.ts'

function chunked(chunks: readonly string[], pulled: (count: number) => void = () => undefined): Request {
  let at = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulled(at + 1)
        const chunk = chunks[at]
        at += 1
        if (chunk === undefined) controller.close()
        else controller.enqueue(Buffer.from(chunk))
      },
    },
    { highWaterMark: 0 },
  )
  return new Request('http://localhost/', { method: 'POST', body })
}

test('readJson reads a chunked body', async () => {
  expect(await readJson(chunked(['{"a":', '"ä"', '}']))).toEqual({ a: 'ä' })
})

test('readJson stops at the limit in a body of unknown length', async () => {
  let pulls = 0
  const endless = chunked(
    Array.from({ length: 10_000 }, () => 'x'.repeat(64)),
    (count) => (pulls = count),
  )
  expect(await rejectionOf(readJson(endless, 640))).toMatchObject({ code: 'frame_too_large' })
  expect(pulls).toBeLessThan(20)
})

test('readJson refuses a body that is not JSON in UTF-8', async () => {
  expect(await rejectionOf(readJson(chunked([])))).toMatchObject({ code: 'bad_request' })
  const request = new Request('http://localhost/', { method: 'POST', body: Uint8Array.of(0x22, 0xff, 0x22) })
  expect(await rejectionOf(readJson(request))).toMatchObject({ code: 'bad_request' })
})

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

test('drainBody reads the rest of a body, up to a limit', async () => {
  const short = bodyOf(5)
  await drainBody(short.request)
  expect(short.pulled()).toBe(6)
  const long = bodyOf(1_000_000)
  await drainBody(long.request, { maxBytes: 10_000, timeMs: 60_000 })
  expect(long.pulled()).toBeLessThan(20)
})

test('drainBody gives up after its timeout', async () => {
  const body = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) })
  await drainBody(new Request('http://localhost/', { method: 'PUT', body }), { maxBytes: 10, timeMs: 1 })
})

test('drainBody ignores a missing body, and one that has a reader', async () => {
  const { request } = bodyOf(5)
  const reader = request.body?.getReader()
  await drainBody(request)
  await drainBody(new Request('http://localhost/'))
  expect((await reader?.read())?.value?.byteLength).toBe(1000)
})
