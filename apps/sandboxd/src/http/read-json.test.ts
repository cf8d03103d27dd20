import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { readJson } from './read-json.ts'

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

test('reads a body that comes in pieces', async () => {
  expect(await readJson(chunked(['{"a":', '"ä"', '}']))).toEqual({ a: 'ä' })
})

test('reads no further into a body without a length than the limit', async () => {
  let pulls = 0
  const endless = chunked(
    Array.from({ length: 10_000 }, () => 'x'.repeat(64)),
    (count) => (pulls = count),
  )
  expect(await rejectionOf(readJson(endless, 640))).toMatchObject({ code: 'frame_too_large' })
  expect(pulls).toBeLessThan(20)
})

test('refuses what is no JSON in UTF-8', async () => {
  expect(await rejectionOf(readJson(chunked([])))).toMatchObject({ code: 'bad_request' })
  const request = new Request('http://localhost/', { method: 'POST', body: Uint8Array.of(0x22, 0xff, 0x22) })
  expect(await rejectionOf(readJson(request))).toMatchObject({ code: 'bad_request' })
})
