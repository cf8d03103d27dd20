import { existsSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createFixture, type Fixture } from './git-workspace.fixture.ts'

const FILES = 50_000
const BRANCHES = 3_000
const MAKING_MS = 60_000
/** Removing many files from a shared disk is slow; memory is not. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES = 1024 ** 3

function hasMemory(): boolean {
  if (!existsSync(MEMORY)) return false
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize >= MEMORY_BYTES
}

/** Input of `git fast-import`: one commit with many files, and many branches at it. */
function* importedLines(): Generator<string, void> {
  yield 'commit refs/heads/main\ncommitter Someone <someone@example.test> 1000000000 +0000\ndata 5\nfirst\n'
  for (let at = 0; at < FILES; at += 1) yield `M 100644 inline f${at % 500}/g${at}\ndata 3\n${at % 10}0\n`
  for (let at = 0; at < BRANCHES; at += 1) yield `\nreset refs/heads/branch/${at}\nfrom refs/heads/main\n`
}

let fixture: Fixture

beforeAll(() => {
  fixture = createFixture(hasMemory() ? { parent: MEMORY } : {})
  const stdin = Buffer.from([...importedLines()].join(''))
  const imported = Bun.spawnSync(['git', 'fast-import', '--quiet'], { cwd: fixture.root, stdin })
  expect(imported.stderr.toString()).toBe('')
  fixture.git('reset', '--quiet', '--hard')
  for (let at = 0; at < 200; at += 1) fixture.write(`f${at}/g${at}`, 'changed\n')
  rmSync(join(fixture.root, 'f499'), { recursive: true })
  for (let at = 0; at < 300; at += 1) fixture.write(`new/${at}`, '')
}, MAKING_MS)

afterAll(() => fixture[Symbol.dispose](), MAKING_MS)

test('returns the status of many files', async () => {
  const { body } = await fixture.get('git/status')
  expect(body).toMatchObject({ truncated: false, untracked: true })
  expect((body as { files: unknown[] }).files).toHaveLength(200 + FILES / 500 + 1)
})

test('returns the diff of many files and of one of them', async () => {
  const { body } = await fixture.get('git/diff')
  expect((body as { files: unknown[] }).files).toHaveLength(200 + FILES / 500)
  expect(await fixture.get('git/diff?path=f7/g7')).toMatchObject({ body: { files: [{ path: 'f7/g7' }] } })
})

test('truncates many branches and reports it', async () => {
  const { body } = await fixture.get('git/branches')
  expect(body).toMatchObject({ truncated: true, head: { branch: 'main' } })
  expect((body as { branches: unknown[] }).branches).toHaveLength(1_000)
})

test('stages, unstages and discards everything', async () => {
  expect(await fixture.post('git/stage', { paths: ['.'] })).toMatchObject({ status: 200 })
  expect(fixture.git('status', '--porcelain').split('\n').length - 1).toBe(200 + FILES / 500 + 300)
  expect(await fixture.post('git/unstage', { paths: ['.'] })).toMatchObject({ status: 200 })
  expect(await fixture.post('git/discard', { paths: ['.'] })).toMatchObject({ status: 200 })
  expect(await fixture.post('git/discard', { paths: ['new'], untracked: true })).toMatchObject({
    body: { removed: 300 },
  })
  expect(await fixture.get('git/status')).toMatchObject({ body: { files: [] } })
})
