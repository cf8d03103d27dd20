import { expect, test } from 'bun:test'
import { Refetch } from './refetch.ts'

test('calls during a run share one further run, whether or not the first succeeded', async () => {
  let done = 0
  const turns = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const refetch = new Refetch(() => turns[done++]?.promise ?? Promise.resolve())
  const first = refetch.run()
  const meanwhile = [refetch.run(), refetch.run()]
  turns[0]?.reject(new Error('no answer'))
  expect(await first.catch(String)).toBe('Error: no answer')
  turns[1]?.resolve()
  expect(await Promise.all(meanwhile)).toEqual([undefined, undefined])
  expect(done).toBe(2)
  const third = refetch.run()
  const fourth = refetch.run()
  turns[2]?.resolve()
  await Promise.all([third, fourth])
  expect(done).toBe(4)
})
