import { expect, test } from 'bun:test'
import { planStop } from './stop-plan.ts'

test('a plan says how long everybody has, and why it is over where that is known', () => {
  expect(planStop(4_000).message).toBe('The sandbox is stopping: it ends within 4 s')
  expect(planStop(3_500, 'it was idle').message).toBe(
    'The sandbox is stopping because it was idle: it ends within 4 s',
  )
})
