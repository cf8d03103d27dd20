import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { Turns } from './turns.ts'

/** Work that ends when it is told to. */
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

test('work for one id happens one after the other, in the order asked', async () => {
  const order: string[] = []
  const { work, settle } = createWork(order)
  const turns = new Turns<string>()
  const all = [
    turns.share('a', work('start')),
    turns.take('a', work('stop')),
    turns.share('a', work('again')),
  ]
  const other = turns.take('b', work('other'))
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

test('a start is shared until it ends or something else is asked for', async () => {
  const turns = new Turns<number>()
  let starts = 0
  const start = async (): Promise<number> => (starts += 1)
  expect(await Promise.all([turns.share('a', start), turns.share('a', start)])).toEqual([1, 1])
  expect(await turns.share('a', start)).toBe(2)
  const both = [turns.share('a', start), turns.take('a', async () => 0), turns.share('a', start)]
  expect(await Promise.all(both)).toEqual([3, 0, 4])
})

test('work that fails is told to those who asked, and the next goes on', async () => {
  const turns = new Turns<string>()
  const failing = turns.share('a', () => Promise.reject(new Error('no')))
  const next = turns.take('a', async () => 'next')
  expect(String(await rejectionOf(failing))).toContain('no')
  expect(await next).toBe('next')
  expect(await turns.share('a', async () => 'later')).toBe('later')
})
