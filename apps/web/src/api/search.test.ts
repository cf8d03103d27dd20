import { expect, test } from 'bun:test'
import { readLines } from './search.ts'

function streamOf(pieces: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })
}

test('yields whole lines however the bytes are split', async () => {
  const bytes = new TextEncoder().encode('{"a":"ä🦜"}\n\n{"b":2}\n')
  for (let cut = 1; cut < bytes.length; cut += 1) {
    const lines: unknown[] = []
    for await (const line of readLines(streamOf([bytes.slice(0, cut), bytes.slice(cut)]))) lines.push(line)
    expect(lines).toEqual([{ a: 'ä🦜' }, { b: 2 }])
  }
})
