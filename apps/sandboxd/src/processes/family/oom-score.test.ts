import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { NO_VICTIM, openVictimScore } from './oom-score.ts'

const readScore = (): string => readFileSync('/proc/self/oom_score_adj', 'utf8').trim()

test('processes are ended before the one that starts them when memory runs out (threat T32)', async () => {
  const before = readScore()
  const asVictim = openVictimScore()
  const child = asVictim(() => Bun.spawn(['cat', '/proc/self/oom_score_adj'], { stdout: 'pipe' }))
  expect(readScore()).toBe(before)
  expect(await new Response(child.stdout).text()).toBe('1000\n')
  expect(() =>
    asVictim(() => {
      throw new Error('not started')
    }),
  ).toThrow('not started')
  expect(readScore()).toBe(before)
})

test('scores stay as they are where they cannot be changed', () => {
  expect(openVictimScore('/nowhere')).toBe(NO_VICTIM)
})
