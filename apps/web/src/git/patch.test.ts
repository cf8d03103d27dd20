import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { applyDiff, undoDiff } from './patch.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'patch-'))

/** The diff as git prints it. */
function gitDiff(before: string, after: string): string {
  const [one, two] = [path.join(folder, 'one'), path.join(folder, 'two')]
  writeFileSync(one, before)
  writeFileSync(two, after)
  // Outside this project, whose line ending rules would apply.
  return Bun.spawnSync(['git', 'diff', '--no-index', one, two], { cwd: folder }).stdout.toString()
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}\n`).join('')

const PAIRS: readonly (readonly [string, string, string])[] = [
  ['a changed line', 'a\nb\nc\n', 'a\nB\nc\n'],
  ['a new file', '', 'a\nb\n'],
  ['an emptied file', 'a\nb\n', ''],
  ['no end at the last line', 'a\nb', 'a\nb\n'],
  ['an end that went', 'a\nb\n', 'a\nb'],
  ['no end on either side', 'a\nb', 'a\nc'],
  ['no end in what stays', 'a\nb\nc', 'x\nb\nc'],
  ['far places', numbered(1, 60), numbered(1, 20) + 'new\n' + numbered(22, 50) + numbered(52, 60)],
  ['what looks like a diff', '-x\n+y\n@@ -1 +1 @@\n', '-x\n+z\n@@ -1 +1 @@\n\\ no\n'],
  ['carriage returns', 'a\r\nb\r\n', 'a\r\nc\r\n'],
]

test.each([...PAIRS])('undoes and applies a diff: %s', (_, before, after) => {
  const diff = gitDiff(before, after)
  expect(undoDiff(after, diff)).toBe(before)
  expect(applyDiff(before, diff)).toBe(after)
})

test('detects a diff of another text', () => {
  const diff = gitDiff(numbered(1, 9), numbered(1, 8))
  expect(undoDiff('something else\n', diff)).toBeUndefined()
  expect(applyDiff('something else\n', diff)).toBeUndefined()
})

test('handles more lines than a call takes arguments', () => {
  const [count, line] = [1_000_000, 'x\n']
  const many = line.repeat(count)
  const diff = `@@ -0,0 +1,${count} @@\n${`+${line}`.repeat(count)}`
  expect(applyDiff('', diff) === many).toBe(true)
  expect(undoDiff(many, diff)).toBe('')
})

process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
