import { expect, test } from 'bun:test'
import { readLines } from './lines.ts'

function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
}

test('readLines joins split lines and characters, and yields an unterminated last line', async () => {
  const bytes = new TextEncoder().encode('one\n\ntwö\nthree')
  for (let cut = 0; cut <= bytes.length; cut++) {
    const stream = streamOf(bytes.subarray(0, cut), bytes.subarray(cut))
    expect(await Array.fromAsync(readLines(stream))).toEqual(['one', '', 'twö', 'three'])
  }
})

test('readLines yields an endless line in pieces', async () => {
  const chunk = new Uint8Array(600 * 1024).fill(97)
  const lines = await Array.fromAsync(readLines(streamOf(chunk, chunk, chunk)))
  expect(lines.map((line) => line.length)).toEqual([1_228_800, 614_400])
})
