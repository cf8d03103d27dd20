import { expect, test } from 'bun:test'
import { InputQueue } from './input-queue.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** A process that accepts input when the test says so. */
function createWriter(tellLost: (bytes: number) => void = () => {}) {
  const taken: string[] = []
  const waiting: PromiseWithResolvers<void>[] = []
  const queue = new InputQueue({
    write: (piece) => {
      const gate = Promise.withResolvers<void>()
      waiting.push(gate)
      return gate.promise.then(() => void taken.push(new TextDecoder().decode(piece)))
    },
    onLost: tellLost,
  })
  /** Accepts the pending piece and runs what follows. */
  const answer = async (refusal?: Error): Promise<void> => {
    const gate = waiting.shift()
    if (refusal === undefined) gate?.resolve()
    else gate?.reject(refusal)
    await settle()
  }
  return { queue, taken, waiting, answer }
}

/** Long enough for chained promises only. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

test('sends input in order, each piece after the previous one was accepted', async () => {
  const { queue, taken, waiting, answer } = createWriter()
  queue.send(bytes('a'))
  queue.send(bytes('b'))
  await settle()
  expect(waiting).toHaveLength(1)
  await answer()
  await answer()
  expect(taken).toEqual(['a', 'b'])
})

test('splits long input', async () => {
  const { queue, taken, answer } = createWriter()
  queue.send(bytes('x'.repeat(70_000)))
  await settle()
  for (let piece = 0; piece < 3; piece += 1) await answer()
  expect(taken.map((piece) => piece.length)).toEqual([32_768, 32_768, 4_464])
})

test('reports rejected input with its rest, and sends what follows', async () => {
  const lost: number[] = []
  const { queue, taken, answer } = createWriter((count) => lost.push(count))
  queue.send(bytes('x'.repeat(70_000)))
  queue.send(bytes('after'))
  await settle()
  await answer()
  await answer(new Error('No'))
  await answer()
  expect(taken.slice(1)).toEqual(['after'])
  expect(lost).toEqual([70_000 - 32_768])
})

test('sends what follows even if the report throws', async () => {
  const { queue, taken, answer } = createWriter(() => {
    throw new Error('Not now')
  })
  queue.send(bytes('before'))
  queue.send(bytes('after'))
  await settle()
  await answer(new Error('No'))
  await answer()
  expect(taken).toEqual(['after'])
})
