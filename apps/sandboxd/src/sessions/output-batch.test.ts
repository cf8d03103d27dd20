import { describe, expect, test } from 'bun:test'
import { OutputBatch } from './output-batch.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function setUp(): { batch: OutputBatch; delivered: string[] } {
  const delivered: string[] = []
  const batch = new OutputBatch((stream, chunk) =>
    delivered.push(`${stream} ${new TextDecoder().decode(chunk)}`),
  )
  return { batch, delivered }
}

describe('OutputBatch', () => {
  test('delivers the first chunk of a turn at once', () => {
    const { batch, delivered } = setUp()
    batch.add('stdout', bytes('a'))
    expect(delivered).toEqual(['stdout a'])
  })

  test('joins further chunks of the same turn', async () => {
    const { batch, delivered } = setUp()
    for (const text of ['a', 'b', 'c', 'd']) batch.add('stdout', bytes(text))
    expect(delivered).toEqual(['stdout a'])
    await nextTurn()
    expect(delivered).toEqual(['stdout a', 'stdout bcd'])
  })

  test('keeps the order of the streams', async () => {
    const { batch, delivered } = setUp()
    batch.add('stdout', bytes('a'))
    batch.add('stdout', bytes('b'))
    batch.add('stderr', bytes('c'))
    batch.add('stderr', bytes('d'))
    batch.add('stdout', bytes('e'))
    batch.flush()
    expect(delivered).toEqual(['stdout a', 'stdout b', 'stderr cd', 'stdout e'])
    await nextTurn()
    expect(delivered).toHaveLength(4)
  })

  test('delivers a full batch without waiting', () => {
    const { batch, delivered } = setUp()
    batch.add('stdout', bytes('a'))
    for (let index = 0; index < 7; index += 1) batch.add('stdout', bytes('x'.repeat(10_000)))
    expect(delivered.map((text) => text.length)).toEqual([8, 70_007])
  })

  test('delivers a large chunk after waiting ones, without joining them', () => {
    const { batch, delivered } = setUp()
    batch.add('stdout', bytes('a'))
    batch.add('stdout', bytes('b'))
    batch.add('stdout', bytes('y'.repeat(20_000)))
    expect(delivered.map((text) => text.length)).toEqual([8, 8, 20_007])
  })

  test('delivers at once again after a quiet turn', async () => {
    const { batch, delivered } = setUp()
    batch.add('stdout', bytes('a'))
    await nextTurn()
    batch.add('stdout', bytes('b'))
    expect(delivered).toEqual(['stdout a', 'stdout b'])
  })
})
