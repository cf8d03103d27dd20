import { expect, test } from 'bun:test'
import { chooseOomScore } from './resource-limits.ts'

const INITIAL = '         0          0 4294967295\n'
const status = (effective: string): string => `Name:\tx\nCapEff:\t${effective}\nSeccomp:\t0\n`

test('raises sandboxd’s OOM score only if processes cannot choose a lower one', () => {
  expect(chooseOomScore(status('000001ffffffffff'), INITIAL)).toBe(200)
  // Root without the capability, as in containers.
  expect(chooseOomScore(status('000001fffeffffff'), INITIAL)).toBeUndefined()
  expect(chooseOomScore(status('0000000000000000'), INITIAL)).toBeUndefined()
  // Root of a user namespace, whose capabilities do not apply here.
  expect(chooseOomScore(status('000001ffffffffff'), '0 100000 65536\n')).toBeUndefined()
  expect(chooseOomScore('', '')).toBeUndefined()
})
