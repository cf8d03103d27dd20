import { describe, expect, test } from 'bun:test'
import { identifyProcess, isRunning, parseStartTicks, programOf } from './process-identity.ts'

/** Fields 3 to 22 of a stat line, the last being the start time. */
const FIELDS = `S ${Array.from({ length: 18 }, (_, index) => index).join(' ')} 4242`

describe('parseStartTicks', () => {
  test.each(['bun', 'a b', ') S 1 2 3', 'x) (y'])('reads field 22 behind the name "%s"', (name) => {
    expect(parseStartTicks(`77 (${name}) ${FIELDS} 0 0`)).toBe(4242)
  })

  test('takes a zombie as ended', () => {
    expect(parseStartTicks(`77 (bun) ${FIELDS.replace('S', 'Z')} 0`)).toBeUndefined()
  })

  test.each(['', '77 (bun)', '77 (bun) S 1'])('finds nothing in "%s"', (stat) => {
    expect(parseStartTicks(stat)).toBeUndefined()
  })
})

describe('a process identity', () => {
  test('is this process while it runs', () => {
    const self = identifyProcess(process.pid)
    expect(self?.pid).toBe(process.pid)
    expect(self !== undefined && isRunning(self)).toBe(true)
    expect(programOf(process.pid)).toContain('bun')
  })

  test('is not a later process with the same number', () => {
    const self = identifyProcess(process.pid)
    expect(isRunning({ pid: process.pid, startTicks: (self?.startTicks ?? 0) + 1 })).toBe(false)
  })

  test('is nobody when the number is free', () => {
    expect(identifyProcess(2 ** 22 + 1)).toBeUndefined()
    expect(programOf(2 ** 22 + 1)).toBeUndefined()
  })
})
