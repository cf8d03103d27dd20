import { describe, expect, test } from 'bun:test'
import { identifyProcess, isRunning, parseStartTicks, programOf } from './process-identity.ts'

/** Fields 3 to 22 of a stat line: the state first, the count of threads third from the end, the start time last. */
function fieldsOf(state: string, threads: number): string {
  return `${state} ${'7 '.repeat(16)}${threads} 0 4242`
}
const FIELDS = fieldsOf('S', 1)

describe('parseStartTicks', () => {
  test.each(['bun', 'a b', ') S 1 2 3', 'x) (y'])('reads field 22 after the name "%s"', (name) => {
    expect(parseStartTicks(`77 (${name}) ${FIELDS} 0 0`)).toBe(4242)
  })

  test('treats a zombie as ended', () => {
    expect(parseStartTicks(`77 (bun) ${fieldsOf('Z', 1)} 0`)).toBeUndefined()
  })

  test('treats a process with remaining threads as running', () => {
    expect(parseStartTicks(`77 (bun) ${fieldsOf('Z', 2)} 0`)).toBe(4242)
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

  test('differs for a later process with the same pid', () => {
    const self = identifyProcess(process.pid)
    expect(isRunning({ pid: process.pid, startTicks: (self?.startTicks ?? 0) + 1 })).toBe(false)
  })

  test('is undefined for an unused pid', () => {
    expect(identifyProcess(2 ** 22 + 1)).toBeUndefined()
    expect(programOf(2 ** 22 + 1)).toBeUndefined()
  })
})
