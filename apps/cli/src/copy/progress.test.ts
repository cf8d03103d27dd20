import { expect, test } from 'bun:test'
import { type Progress, formatProgress } from './progress.ts'

const MIB = 1024 * 1024
const PROGRESS: Progress = {
  bytes: 50 * MIB,
  totalBytes: 200 * MIB,
  entries: 1,
  name: 'file',
  elapsedMs: 10_000,
}

test('progress is one line with bytes, rate and time left', () => {
  expect(formatProgress(PROGRESS, 200)).toBe('file  25%  50.0 MiB of 200 MiB  5.0 MiB/s  0:30 left')
  const unknown = { ...PROGRESS, totalBytes: undefined, entries: 12 }
  expect(formatProgress(unknown, 200)).toBe('file  50.0 MiB  12 entries  5.0 MiB/s')
  expect(formatProgress({ ...PROGRESS, totalBytes: 50_000 * MIB }, 200)).toContain('2:46 h left')
  expect(formatProgress({ ...PROGRESS, bytes: 0, elapsedMs: 0 }, 200)).toBe('file  0%  0 B of 200 MiB')
  expect(formatProgress({ ...PROGRESS, problem: 'no answer' }, 200)).toEndWith('no answer')
})

test('progress fits the terminal, and escapes names (threat T24)', () => {
  expect(formatProgress(PROGRESS, 20).length).toBeLessThan(20)
  const name = 'a\x1b]0;x\x07\n\u202eb'.padEnd(500, 'n')
  expect(formatProgress({ ...PROGRESS, name, problem: '\x1b[2J' }, 120)).toMatch(/^[^\p{C}]{10,120}$/u)
})
