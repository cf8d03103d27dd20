import { describe, expect, test } from 'bun:test'
import { planShutdown } from './shutdown-plan.ts'

describe('planShutdown', () => {
  test('reports the remaining time, and the reason if it is known', () => {
    expect(planShutdown(4_000).notice).toEqual({ message: 'The sandbox is stopping: it ends within 4 s' })
    expect(planShutdown(3_500, 'idle').notice).toEqual({
      message: 'The sandbox is stopping because it was idle: it ends within 4 s',
      reason: 'idle',
    })
  })

  test('leaves time for the last output of processes that are killed', () => {
    expect(planShutdown(4_000).timeouts).toEqual({ hangupMs: 500, terminateMs: 2_500, giveUpMs: 1_000 })
    expect(planShutdown(1_000).timeouts).toEqual({ hangupMs: 250, terminateMs: 500, giveUpMs: 250 })
  })
})
