import { expect, test } from 'bun:test'
import type { GitDiff } from '../api/git.ts'
import { canCompare, formatGitDiff } from './diff-texts.ts'

const large: GitDiff = {
  files: [{ path: 'big', status: 'A', added: 200_000, removed: 1, binary: false }],
  diff: '+line\n'.repeat(200_000),
  lossy: false,
  truncated: false,
}

test('shows a short diff as git prints it', () => {
  expect(formatGitDiff({ ...large, diff: '+a\n' }, 'git diff')).toEqual({ text: '+a\n' })
})

test('truncates a long diff at a line break and says how to see the rest', () => {
  const { text, note } = formatGitDiff(large, 'git diff --staged')
  expect(text.length).toBeLessThan(300_000)
  expect(text.endsWith('+line\n')).toBe(true)
  expect(note).toBe(
    'Too large to show in full: 200,000 lines added, 1 line removed. Showing the beginning. Run git diff --staged in a terminal to see it all.',
  )
})

test('marks a diff that the server truncated', () => {
  expect(formatGitDiff({ ...large, diff: '+a\n', truncated: 'bytes' }, 'git diff').note).toContain(
    'the beginning',
  )
})

test('compares texts up to a size limit', () => {
  expect(canCompare('a', 'b')).toBe(true)
  expect(canCompare('a'.repeat(5_000_000), 'b'.repeat(5_000_000))).toBe(false)
})
