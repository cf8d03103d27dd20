import { expect, test } from 'bun:test'
import { Consumption } from './consumption.ts'

test('Consumption advances to the offset before the first unconsumed chunk', () => {
  const reached: number[] = []
  const consumption = new Consumption((end) => reached.push(end))
  const [first, second, third] = [consumption.add(10), consumption.add(20), consumption.add(30)]
  second()
  expect(reached).toEqual([])
  first()
  expect(reached).toEqual([20])
  first()
  third()
  third()
  expect(reached).toEqual([20, 30])
})
