import { expect, test } from 'bun:test'
import { judgeScore } from './resource-limits.ts'

const INITIAL = '         0          0 4294967295\n'
const status = (effective: string): string => `Name:\tx\nCapEff:\t${effective}\nSeccomp:\t0\n`

test('the score of sandboxd is raised only where its processes cannot go below it', () => {
  expect(judgeScore(status('000001ffffffffff'), INITIAL)).toBe(200)
  // Root without the right, as in containers.
  expect(judgeScore(status('000001fffeffffff'), INITIAL)).toBeUndefined()
  expect(judgeScore(status('0000000000000000'), INITIAL)).toBeUndefined()
  // Root of a user namespace, whose rights do not count for this.
  expect(judgeScore(status('000001ffffffffff'), '0 100000 65536\n')).toBeUndefined()
  expect(judgeScore('', '')).toBeUndefined()
})
