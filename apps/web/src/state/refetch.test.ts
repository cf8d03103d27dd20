import { expect, test } from 'bun:test'
import { Refetch } from './refetch.ts'

test('calls during a run share one further run, whether or not the first succeeded', async () => {
  let done = 0
  const turns = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const oneMore = new Refetch(() => turns[done++]?.promise ?? Promise.resolve())
  const first = oneMore.run()
  const meanwhile = [oneMore.run(), oneMore.run()]
  turns[0]?.reject(new Error('no answer'))
  expect(await first.catch(String)).toBe('Error: no answer')
  turns[1]?.resolve()
  expect(await Promise.all(meanwhile)).toEqual([undefined, undefined])
  expect(done).toBe(2)
  const third = oneMore.run()
  const fourth = oneMore.run()
  turns[2]?.resolve()
  await Promise.all([third, fourth])
  expect(done).toBe(4)
})
