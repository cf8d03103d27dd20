import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { INHERIT_OOM_SCORE, openOomScore } from './oom-score.ts'

const readScore = (): string => readFileSync('/proc/self/oom_score_adj', 'utf8').trim()

test('(threat T32) started processes have a higher OOM score than the process that starts them', async () => {
  const before = readScore()
  const withOomScore = openOomScore()
  const child = withOomScore(() => Bun.spawn(['cat', '/proc/self/oom_score_adj'], { stdout: 'pipe' }))
  expect(readScore()).toBe(before)
  expect(await new Response(child.stdout).text()).toBe('1000\n')
  expect(() =>
    withOomScore(() => {
      throw new Error('not started')
    }),
  ).toThrow('not started')
  expect(readScore()).toBe(before)
})

test('the score is inherited where it cannot be changed', () => {
  expect(openOomScore('/nowhere')).toBe(INHERIT_OOM_SCORE)
})
