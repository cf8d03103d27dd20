import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { KeyedSerializer } from './keyed-serializer.ts'

/** Work that ends when `settle` lets it. */
function createWork(order: string[]) {
  const gates: (() => void)[] = []
  const work = (name: string) => async (): Promise<string> => {
    order.push(`${name} begins`)
    await new Promise<void>((resolve) => gates.push(resolve))
    order.push(`${name} ends`)
    return name
  }
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 20; round += 1) {
      gates.shift()?.()
      await Promise.resolve()
    }
  }
  return { work, settle }
}

test('runs work for one key in order, and different keys concurrently', async () => {
  const order: string[] = []
  const { work, settle } = createWork(order)
  const serializer = new KeyedSerializer<string>()
  const all = [
    serializer.runShared('a', work('start')),
    serializer.run('a', work('stop')),
    serializer.runShared('a', work('again')),
  ]
  const other = serializer.run('b', work('other'))
  for (let round = 0; round < 5; round += 1) await settle()
  expect(await Promise.all([...all, other])).toEqual(['start', 'stop', 'again', 'other'])
  expect(order.filter((line) => !line.startsWith('other'))).toEqual([
    'start begins',
    'start ends',
    'stop begins',
    'stop ends',
    'again begins',
    'again ends',
  ])
  expect(order.indexOf('other begins')).toBeLessThan(order.indexOf('start ends'))
})

test('shares work until it ends or other work is queued', async () => {
  const serializer = new KeyedSerializer<number>()
  let starts = 0
  const start = async (): Promise<number> => (starts += 1)
  expect(await Promise.all([serializer.runShared('a', start), serializer.runShared('a', start)])).toEqual([
    1, 1,
  ])
  expect(await serializer.runShared('a', start)).toBe(2)
  const both = [
    serializer.runShared('a', start),
    serializer.run('a', async () => 0),
    serializer.runShared('a', start),
  ]
  expect(await Promise.all(both)).toEqual([3, 0, 4])
})

test('rejects for failed work only, and continues with the next', async () => {
  const serializer = new KeyedSerializer<string>()
  const failing = serializer.runShared('a', () => Promise.reject(new Error('no')))
  const next = serializer.run('a', async () => 'next')
  expect(String(await rejectionOf(failing))).toContain('no')
  expect(await next).toBe('next')
  expect(await serializer.runShared('a', async () => 'later')).toBe('later')
})
