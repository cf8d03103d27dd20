import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { WorkTree } from './work-tree.ts'

let folder: string
const at = (name: string): string => path.join(folder, name)
function git(...args: string[]): string {
  const child = Bun.spawnSync(['git', '-c', 'user.name=x', '-c', 'user.email=x@example.com', ...args], {
    cwd: folder,
  })
  if (child.exitCode !== 0) throw new Error(child.stderr.toString())
  return child.stdout.toString()
}

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'sbx-tree-'))
  git('init', '-q')
  writeFileSync(at('.gitignore'), 'ignored\n')
  writeFileSync(at('tracked'), 'one\n')
  writeFileSync(at('gone'), 'x\n')
  mkdirSync(at('inner'))
  writeFileSync(at('inner/deep'), 'deep\n')
  git('add', '.')
  git('commit', '-qm', 'x')
  writeFileSync(at('ignored'), 'secret\n')
  writeFileSync(at('new'), 'new\n')
  symlinkSync('tracked', at('link'))
  rmSync(at('gone'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('sends tracked files and others that are not ignored, each folder before its contents', () => {
  mkdirSync(at('nested'))
  Bun.spawnSync(['git', 'init', '-q'], { cwd: at('nested') })
  const entries = [...WorkTree.find(at('inner')).entries()].map(({ path: name, kind }) => [name, kind])
  expect(entries).toEqual([
    ['.gitignore', 'file'],
    ['inner', 'folder'],
    ['inner/deep', 'file'],
    ['link', 'link'],
    ['new', 'file'],
    ['tracked', 'file'],
  ])
})

test('notices every change of what was sent, writes nothing to the repository, and ignores ignored files', () => {
  const tree = WorkTree.find(folder)
  const status = git('status', '--porcelain')
  const objects = git('count-objects')
  const before = tree.hash()
  writeFileSync(at('ignored'), 'other\n')
  expect(tree.hash()).toBe(before)
  expect([git('status', '--porcelain'), git('count-objects')]).toEqual([status, objects])
  writeFileSync(at('tracked'), 'two\n')
  const changed = tree.hash()
  expect(changed).not.toBe(before)
  chmodSync(at('tracked'), 0o755)
  expect(tree.hash()).not.toBe(changed)
})

test('applies a patch completely or not at all', () => {
  const tree = WorkTree.find(folder)
  const patch = (line: string): Uint8Array =>
    new TextEncoder().encode(
      `diff --git a/tracked b/tracked\n--- a/tracked\n+++ b/tracked\n@@ -1 +1 @@\n-${line}\n+two\n`,
    )
  expect(() => tree.apply(patch('other'))).toThrow('Cannot apply the changes')
  expect(readFileSync(at('tracked'), 'utf8')).toBe('one\n')
  expect(tree.stat(patch('one'))).toContain('1 file changed')
  tree.apply(patch('one'))
  expect(readFileSync(at('tracked'), 'utf8')).toBe('two\n')
})

test('applies a patch to the bytes that were sent, whatever filters and line endings the repository has', () => {
  writeFileSync(at('.gitattributes'), 'tracked filter=shout\n')
  git('config', 'filter.shout.clean', 'tr a-z A-Z')
  git('config', 'core.autocrlf', 'true')
  const changed = (name: string, line: string): string =>
    `diff --git a/${name} b/${name}\n--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-${line}\n+two\n`
  WorkTree.find(folder).apply(
    new TextEncoder().encode(changed('inner/deep', 'deep') + changed('tracked', 'one')),
  )
  expect(['tracked', 'inner/deep'].map((name) => readFileSync(at(name), 'utf8'))).toEqual(['two\n', 'two\n'])
})

test('a folder without a repository has no work tree', () => {
  expect(() => WorkTree.find('/')).toThrow('not in a git work tree')
})
