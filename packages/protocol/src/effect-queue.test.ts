import { describe, expect, test } from 'bun:test'
import { EffectQueue } from './effect-queue.ts'

describe('EffectQueue', () => {
  test('performs follow-up effects after queued ones, and settles once', () => {
    const seen: string[] = []
    const queue = new EffectQueue<string>(
      (effect) => {
        seen.push(effect)
        if (effect === 'a') queue.run(['later'])
      },
      () => seen.push('settled'),
    )
    queue.run(['a', 'b'])
    expect(seen).toEqual(['a', 'b', 'later', 'settled'])
  })

  test('continues with the next effect after one fails', () => {
    const seen: string[] = []
    const queue = new EffectQueue<string>(
      (effect) => {
        if (effect === 'bad') throw new Error('no')
        seen.push(effect)
      },
      () => seen.push('settled'),
    )
    expect(() => queue.run(['bad', 'b'])).toThrow('no')
    queue.run(['c'])
    expect(seen).toEqual(['settled', 'b', 'c', 'settled'])
  })
})
