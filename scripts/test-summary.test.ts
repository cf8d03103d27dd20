import { describe, expect, test } from 'bun:test'

import {
  addCounts,
  FailureList,
  formatCounts,
  formatFailures,
  isGreen,
  parseTestSummary,
} from './test-summary.ts'

const summary =
  '\n 12 pass\n 1 skip\n 2 todo\n 3 fail\n 40 expect() calls\nRan 18 tests across 2 files. [29.00ms]\n'

describe('parseTestSummary', () => {
  test('counts todos as skipped', () => {
    expect(parseTestSummary(`x.test.ts:\n(pass) a\n${summary}`)).toEqual({
      passed: 12,
      failed: 3,
      skipped: 3,
    })
  })

  test('counts errors outside tests as failed', () => {
    const output = '\n\n 0 pass\n 1 fail\n 1 error\nRan 1 test across 1 file. [9.00ms]\n'
    expect(parseTestSummary(output)).toEqual({ passed: 0, failed: 2, skipped: 0 })
  })

  test('ignores colors', () => {
    const output =
      '\n\n\u001b[32m 7 pass\u001b[0m\n\u001b[2m 0 fail\u001b[0m\nRan 7 tests across 1 file. [9.00ms]\n'
    expect(parseTestSummary(output)).toEqual({ passed: 7, failed: 0, skipped: 0 })
  })

  test('reads only the last summary when a test printed one', () => {
    const output = `${summary}(pass) runs bun test\n\n 1 pass\n 0 fail\nRan 1 test across 1 file. [9.00ms]\n`
    expect(parseTestSummary(output)).toEqual({ passed: 1, failed: 0, skipped: 0 })
  })

  test('returns undefined for an incomplete run', () => {
    expect(parseTestSummary('x.test.ts:\n(pass) a\n')).toBeUndefined()
  })
})

describe('counts', () => {
  const some = { passed: 2, failed: 0, skipped: 1 }

  test('add up over stages', () => {
    expect(formatCounts(addCounts(some, { passed: 1, failed: 4, skipped: 0 }))).toBe(
      '3 passed, 4 failed, 1 skipped',
    )
  })

  test('are green only when something passed and nothing failed', () => {
    expect(isGreen(some)).toBe(true)
    expect(isGreen({ ...some, failed: 1 })).toBe(false)
    expect(isGreen({ passed: 0, failed: 0, skipped: 5 })).toBe(false)
  })
})

describe('a list of failures', () => {
  function listOf(output: string): FailureList {
    const list = new FailureList()
    for (const character of output) list.push(character)
    return list
  }

  test('names the file of each, wherever the output is split', () => {
    const { failures } = listOf(
      'a.test.ts:\n(pass) one [1ms]\n\u001b[31m(fail)\u001b[0m two > b [2ms]\nc.test.ts:\n(fail) three\n\n1 test failed:\n(fail) two > b [2ms]\n',
    )
    expect(failures).toEqual([
      { file: 'a.test.ts', title: 'two > b [2ms]', reason: '' },
      { file: 'c.test.ts', title: 'three', reason: '' },
    ])
  })

  test('shows the first error of each in one line', () => {
    const { failures } = listOf(
      'a.test.ts:\nError: of a test that passed\n(pass) one\n1 | code\nerror: expect(received).toBe(expected)\n\nExpected: 2\nReceived: 1\n\n      at <anonymous> (a.test.ts:3:4)\nTypeError: later\n(fail) two\n(fail) three\n',
    )
    expect(failures.map(({ reason }) => reason)).toEqual([
      'error: expect(received).toBe(expected) Expected: 2 Received: 1',
      '',
    ])
  })

  test('shows the first ones and counts the rest', () => {
    const failures = ['a', 'b', 'c'].map((title) => ({
      file: 'x.test.ts',
      title,
      reason: title === 'a' ? 'why' : '',
    }))
    expect(formatFailures(failures, 2)).toEqual([
      'failed: x.test.ts: a\n  why',
      'failed: x.test.ts: b',
      'and 1 more',
    ])
    expect(formatFailures(failures, 3)).toHaveLength(3)
  })
})
