import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { findRepositories } from './repositories.ts'
import { createFixture, type Fixture } from './git-workspace.fixture.ts'

const NONE = { status: 409, body: { error: { code: 'not_a_repository' } } }

function commitIn(fixture: Fixture, folder: string): void {
  mkdirSync(join(fixture.root, folder), { recursive: true })
  fixture.gitIn(folder, 'init', '--quiet')
  writeFileSync(join(fixture.root, folder, 'file'), 'one\n')
  fixture.gitIn(folder, 'add', 'file')
  fixture.gitIn(folder, 'commit', '--quiet', '--message', 'first')
}

test('every route reports a missing repository', async () => {
  using fixture = createFixture({ isRepository: false })
  fixture.write('file', '')
  for (const route of ['git/status', 'git/diff', 'git/log', 'git/branches', 'git/show?path=file'])
    expect(await fixture.get(route)).toMatchObject(NONE)
  expect(await fixture.post('git/stage', { paths: ['file'] })).toMatchObject(NONE)
})

test('a bare repository is not a work tree', async () => {
  using fixture = createFixture({ isRepository: false })
  fixture.git('init', '--quiet', '--bare')
  expect(await fixture.get('git/status')).toMatchObject(NONE)
})

test('serves a nested repository by its folder, with relative paths', async () => {
  using fixture = createFixture({ isRepository: false })
  commitIn(fixture, 'project')
  fixture.write('project/file', 'two\n')
  fixture.write('project/new', '')
  expect(await fixture.get('git/status')).toMatchObject(NONE)
  expect(await fixture.get('git/status?repo=project')).toMatchObject({
    body: { files: [{ path: 'file', unstaged: 'M' }, { path: 'new' }] },
  })
  expect(await fixture.get('git/show?repo=project&path=file')).toMatchObject({ body: { content: 'one\n' } })
  expect(
    await fixture.post('git/discard', { repo: 'project', paths: ['file', 'new'], untracked: true }),
  ).toMatchObject({ body: { removed: 1 } })
  expect(existsSync(join(fixture.root, 'project/new'))).toBe(false)
  expect(await fixture.get('git/status?repo=project/../..')).toMatchObject({ status: 400 })
  expect(await fixture.get('git/status?repo=missing')).toMatchObject({ status: 404 })
})

test('finds repositories up to two levels deep and follows no link', async () => {
  using fixture = createFixture({ isRepository: false })
  const found = async (): Promise<unknown> => (await fixture.get('git/repositories')).body
  expect(await found()).toEqual({ repositories: [], truncated: false })
  for (const folder of ['b', 'a/deep', 'a/x/too-deep', '.hidden', 'node_modules/x', '\u00e4'])
    commitIn(fixture, folder)
  symlinkSync('b', join(fixture.root, 'alias'))
  symlinkSync(fixture.home, join(fixture.root, 'away'))
  fixture.gitIn('.', 'init', '--quiet')
  const paths = ['.', 'b', '\u00e4', 'a/deep']
  expect(await found()).toEqual({ repositories: paths.map((path) => ({ path })), truncated: false })
  expect(await findRepositories(fixture.files, 2)).toEqual({ paths: ['.'], truncated: true })
})

test('a folder in a repository is not a repository', async () => {
  using fixture = createFixture()
  fixture.write('folder/x', '')
  expect(await fixture.get('git/status?repo=folder')).toMatchObject(NONE)
})

test('serves a linked work tree whose repository is in the workspace', async () => {
  using fixture = createFixture()
  fixture.write('file', 'one\n')
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--message', 'first')
  fixture.git('worktree', 'add', '--quiet', '-b', 'second', 'linked')
  fixture.write('linked/file', 'two\n')
  expect(await fixture.get('git/status?repo=linked')).toMatchObject({
    body: { head: { branch: 'second' }, files: [{ path: 'file' }] },
  })
  expect(await fixture.post('git/stage', { repo: 'linked', paths: ['file'] })).toMatchObject({ status: 200 })
  expect(await fixture.post('git/commit', { repo: 'linked', message: 'x' })).toMatchObject({ status: 200 })
  expect(fixture.git('log', '--format=%s', 'second')).toBe('x\nfirst\n')
  fixture.git('worktree', 'add', '--quiet', '-b', 'conflict', 'third', 'HEAD')
  fixture.write('third/file', 'three\n')
  fixture.gitIn('third', 'commit', '--quiet', '--all', '--message', 'three')
  expect(() => fixture.gitIn('third', 'rebase', 'second')).toThrow()
  expect(await fixture.get('git/status?repo=third')).toMatchObject({ body: { state: 'rebase' } })
})

test('compares a submodule by commit and serves it by its folder', async () => {
  using fixture = createFixture()
  commitIn(fixture, 'origin')
  fixture.git('submodule', '--quiet', 'add', './origin', 'module')
  fixture.git('commit', '--quiet', '--message', 'module')
  fixture.write('module/file', 'two\n')
  rmSync(join(fixture.root, 'origin'), { recursive: true })
  expect(await fixture.get('git/status')).toMatchObject({ body: { files: [] } })
  expect(await fixture.get('git/status?repo=module')).toMatchObject({ body: { files: [{ path: 'file' }] } })
  fixture.gitIn('module', 'commit', '--quiet', '--all', '--message', 'second')
  expect(await fixture.get('git/status')).toMatchObject({
    body: { files: [{ path: 'module', submodule: true, unstaged: 'M' }] },
  })
  expect(await fixture.get('git/diff')).toMatchObject({
    body: { files: [{ path: 'module' }], diff: expect.stringContaining('+Subproject commit ') },
  })
  expect(await fixture.get('git/show?path=module')).toMatchObject({
    body: { error: { code: 'special_file' } },
  })
  expect(await fixture.post('git/stage', { paths: ['module'] })).toMatchObject({ status: 200 })
  expect(await fixture.get('git/status')).toMatchObject({
    body: { files: [{ path: 'module', staged: 'M' }] },
  })
})

test.each(['file', 'link', 'common', 'relative'])(
  'refuses a git directory outside the workspace, referenced by a %s (threat T13)',
  async (way) => {
    using fixture = createFixture()
    fixture.write('secret', 'outside')
    fixture.git('add', '.')
    fixture.git('commit', '--quiet', '--message', 'outside')
    const [inside, outside] = [join(fixture.root, '.git'), join(fixture.root, '../outside')]
    renameSync(inside, outside)
    if (way === 'file') writeFileSync(inside, `gitdir: ${outside}\n`)
    if (way === 'relative') writeFileSync(inside, 'gitdir: ../outside\n')
    if (way === 'link') symlinkSync(outside, inside)
    if (way === 'common') {
      mkdirSync(inside)
      cpSync(join(outside, 'HEAD'), join(inside, 'HEAD'))
      writeFileSync(join(inside, 'commondir'), `${outside}\n`)
    }
    // Git itself accepts it.
    expect(fixture.git('log', '--format=%s')).toBe('outside\n')
    for (const route of ['git/status', 'git/log', 'git/show?path=secret', 'git/branches'])
      expect(await fixture.get(route)).toMatchObject(NONE)
    expect(await fixture.get('compat/git/status')).toEqual({
      status: 200,
      body: { is_repo: false, files: [] },
    })
  },
)

test('follows a link to a folder of the workspace and refuses one that leads outside (threat T13)', async () => {
  using fixture = createFixture({ isRepository: false })
  commitIn(fixture, 'project')
  symlinkSync('project', join(fixture.root, 'alias'))
  symlinkSync(fixture.home, join(fixture.root, 'away'))
  expect(await fixture.get('git/log?repo=alias')).toMatchObject({ body: { commits: [{ message: 'first' }] } })
  expect(await fixture.get('git/log?repo=away')).toMatchObject({
    status: 400,
    body: { error: { code: 'path_refused' } },
  })
})

test.skipIf(process.getuid?.() !== 0)('serves a repository of another user', async () => {
  using fixture = createFixture()
  for (const path of ['.', '.git']) chownSync(join(fixture.root, path), 12_345, 12_345)
  expect(() => fixture.git('status')).toThrow('dubious ownership')
  expect(await fixture.get('git/status')).toMatchObject({ status: 200 })
})

test('reports a configuration that cannot be read', async () => {
  using fixture = createFixture()
  fixture.write('.git/config', '[core\n')
  expect(await fixture.get('git/status')).toMatchObject({
    status: 409,
    body: { error: { code: 'git_failed', message: expect.stringContaining('bad config line') } },
  })
})

test('reports that git is not installed', async () => {
  using fixture = createFixture({ spoil: (plan) => ({ ...plan, argv: ['no-such-git'] }) })
  expect(await fixture.get('git/status')).toMatchObject({ body: { error: { code: 'command_not_found' } } })
  expect(await fixture.get('compat/git/status')).toEqual({ status: 200, body: { is_repo: false, files: [] } })
})
