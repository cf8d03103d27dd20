import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { rejectionOf } from '@sandwire/testing'
import { TreeFixture } from './base-tree.fixture.ts'

/** The workspace as a clone of a repository with one commit on `main`. */
function cloneInto(fixture: TreeFixture): { readonly remote: string } & Disposable {
  const remote = mkdtempSync(path.join(tmpdir(), 'make-change-'))
  fixture.git('init', '-q', '--bare', '-b', 'main', remote)
  fixture.git('init', '-q', '-b', 'main')
  fixture.write('kept', 'kept\n')
  fixture.write('edited', 'old\n')
  fixture.write('.gitignore', '*.log\n')
  fixture.git('add', '-A')
  fixture.git('commit', '-q', '-m', 'first')
  fixture.git('remote', 'add', 'origin', remote)
  fixture.git('push', '-q', '-u', 'origin', 'main')
  return { remote, [Symbol.dispose]: () => rmSync(remote, { recursive: true }) }
}

test('files and local commits become one change on the newest commit of the remote', async () => {
  using fixture = new TreeFixture()
  using clone = cloneInto(fixture)
  const parent = fixture.git('rev-parse', 'HEAD').trim()
  fixture.write('edited', 'committed\n')
  fixture.git('commit', '-q', '-a', '-m', 'local')
  fixture.git('switch', '-q', '-c', 'agent/work')
  fixture.write('made', 'made\n')
  fixture.write('hidden.log', 'x\n')
  fixture.write('tainted', 'a secret-token b\n')
  const change = await fixture.makeChange(['secret-token'])
  expect(change).toMatchObject({ remote: clone.remote, parent, branch: null })
  expect(change.diff.files.map((file) => [file.path, file.action])).toEqual([
    ['edited', 'modify'],
    ['made', 'create'],
  ])
  expect(change.diff.withheld).toEqual(['tainted'])
  // The pack has what the remote does not.
  fixture.gitIn(clone.remote, 'unpack-objects', '-q')
  const made = fixture.gitIn(clone.remote, 'diff', '--name-status', parent, change.diff.treeHash)
  expect(made).toBe('M\tedited\nA\tmade\n')
  expect(fixture.gitIn(clone.remote, 'show', `${change.diff.treeHash}:edited`)).toBe('committed\n')
})

test('a change of the branch that is followed, without changes', async () => {
  using fixture = new TreeFixture()
  using _clone = cloneInto(fixture)
  const { branch, diff } = await fixture.makeChange()
  expect({ branch, files: diff.files, packBytes: diff.packBytes }).toEqual({
    branch: 'main',
    files: [],
    packBytes: null,
  })
})

test('what an agent has pushed to its own branch is still a change, unless the workspace began with that branch', async () => {
  using fixture = new TreeFixture()
  using _clone = cloneInto(fixture)
  const parent = fixture.git('rev-parse', 'HEAD').trim()
  fixture.git('switch', '-q', '-c', 'agent/work')
  fixture.write('edited', 'pushed\n')
  fixture.git('commit', '-q', '-a', '-m', 'pushed')
  fixture.git('push', '-q', '-u', 'origin', 'agent/work')
  const change = await fixture.makeChange()
  expect(change).toMatchObject({ parent, branch: null })
  expect(change.diff.files.map((file) => file.path)).toEqual(['edited'])

  const head = fixture.git('rev-parse', 'HEAD').trim()
  const begun = await fixture.makeChange([], 'agent/work')
  expect(begun).toMatchObject({ parent: head, branch: 'agent/work', diff: { files: [] } })

  // Nothing else of the remote is known.
  fixture.git('update-ref', '-d', 'refs/remotes/origin/main')
  expect(await fixture.makeChange()).toMatchObject({ parent: head, diff: { files: [] } })
})

test('nothing that the repository configures runs', async () => {
  using fixture = new TreeFixture()
  using _clone = cloneInto(fixture)
  const canary = path.join(fixture.home, 'ran')
  fixture.git('config', 'filter.evil.clean', `touch ${canary}; cat`)
  fixture.git('config', 'core.fsmonitor', `touch ${canary}`)
  fixture.git('config', 'diff.external', `touch ${canary}`)
  fixture.write('.gitattributes', '* filter=evil\n')
  fixture.write('edited', 'new\n')
  expect((await fixture.makeChange()).diff.files).toHaveLength(2)
  expect(await Bun.file(canary).exists()).toBe(false)
})

test('without a commit that the remote has there is no change', async () => {
  using fixture = new TreeFixture()
  fixture.write('a', 'a\n')
  const problemOf = async (): Promise<string> => (await rejectionOf(fixture.makeChange())).message
  expect(await problemOf()).toContain('no git repository with a commit')
  fixture.git('init', '-q', '-b', 'main')
  expect(await problemOf()).toContain('no git repository with a commit')
  fixture.git('add', '-A')
  fixture.git('commit', '-q', '-m', 'first')
  expect(await problemOf()).toContain('no remote "origin"')
  fixture.git('remote', 'add', 'origin', 'https://example.test/x')
  expect(await problemOf()).toContain('is on a branch of "origin"')
})
