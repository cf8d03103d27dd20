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
import { createScene, type Scene } from './git-workspace.fixture.ts'

const NONE = { status: 409, body: { error: { code: 'not_a_repository' } } }

function commitIn(scene: Scene, folder: string): void {
  mkdirSync(join(scene.root, folder), { recursive: true })
  scene.gitIn(folder, 'init', '--quiet')
  writeFileSync(join(scene.root, folder, 'file'), 'one\n')
  scene.gitIn(folder, 'add', 'file')
  scene.gitIn(folder, 'commit', '--quiet', '--message', 'first')
}

test('a folder without a repository has none, whatever is asked', async () => {
  using scene = createScene({ isRepository: false })
  scene.write('file', '')
  for (const route of ['git/status', 'git/diff', 'git/log', 'git/branches', 'git/show?path=file'])
    expect(await scene.get(route)).toMatchObject(NONE)
  expect(await scene.post('git/stage', { paths: ['file'] })).toMatchObject(NONE)
})

test('a bare repository is no work tree', async () => {
  using scene = createScene({ isRepository: false })
  scene.git('init', '--quiet', '--bare')
  expect(await scene.get('git/status')).toMatchObject(NONE)
})

test('a repository in a folder is named, and its paths are its own', async () => {
  using scene = createScene({ isRepository: false })
  commitIn(scene, 'project')
  scene.write('project/file', 'two\n')
  scene.write('project/new', '')
  expect(await scene.get('git/status')).toMatchObject(NONE)
  expect(await scene.get('git/status?repo=project')).toMatchObject({
    body: { files: [{ path: 'file', unstaged: 'M' }, { path: 'new' }] },
  })
  expect(await scene.get('git/show?repo=project&path=file')).toMatchObject({ body: { content: 'one\n' } })
  expect(
    await scene.post('git/discard', { repo: 'project', paths: ['file', 'new'], untracked: true }),
  ).toMatchObject({ body: { removed: 1 } })
  expect(existsSync(join(scene.root, 'project/new'))).toBe(false)
  expect(await scene.get('git/status?repo=project/../..')).toMatchObject({ status: 400 })
  expect(await scene.get('git/status?repo=missing')).toMatchObject({ status: 404 })
})

test('repositories are found in the workspace and up to two folders below, and no link is followed', async () => {
  using scene = createScene({ isRepository: false })
  const found = async (): Promise<unknown> => (await scene.get('git/repositories')).body
  expect(await found()).toEqual({ repositories: [], truncated: false })
  for (const folder of ['b', 'a/deep', 'a/x/too-deep', '.hidden', 'node_modules/x', '\u00e4'])
    commitIn(scene, folder)
  symlinkSync('b', join(scene.root, 'alias'))
  symlinkSync(scene.home, join(scene.root, 'away'))
  scene.gitIn('.', 'init', '--quiet')
  const paths = ['.', 'b', '\u00e4', 'a/deep']
  expect(await found()).toEqual({ repositories: paths.map((path) => ({ path })), truncated: false })
  expect(await findRepositories(scene.files, 2)).toEqual({ paths: ['.'], truncated: true })
})

test('a folder of a repository is not one itself', async () => {
  using scene = createScene()
  scene.write('folder/x', '')
  expect(await scene.get('git/status?repo=folder')).toMatchObject(NONE)
})

test('a linked work tree is served where the repository is in the workspace too', async () => {
  using scene = createScene()
  scene.write('file', 'one\n')
  scene.git('add', '.')
  scene.git('commit', '--quiet', '--message', 'first')
  scene.git('worktree', 'add', '--quiet', '-b', 'second', 'linked')
  scene.write('linked/file', 'two\n')
  expect(await scene.get('git/status?repo=linked')).toMatchObject({
    body: { head: { branch: 'second' }, files: [{ path: 'file' }] },
  })
  expect(await scene.post('git/stage', { repo: 'linked', paths: ['file'] })).toMatchObject({ status: 200 })
  expect(await scene.post('git/commit', { repo: 'linked', message: 'x' })).toMatchObject({ status: 200 })
  expect(scene.git('log', '--format=%s', 'second')).toBe('x\nfirst\n')
  scene.git('worktree', 'add', '--quiet', '-b', 'conflict', 'third', 'HEAD')
  scene.write('third/file', 'three\n')
  scene.gitIn('third', 'commit', '--quiet', '--all', '--message', 'three')
  expect(() => scene.gitIn('third', 'rebase', 'second')).toThrow()
  expect(await scene.get('git/status?repo=third')).toMatchObject({ body: { state: 'rebase' } })
})

test('a submodule counts by its commit, and is served by its name', async () => {
  using scene = createScene()
  commitIn(scene, 'origin')
  scene.git('submodule', '--quiet', 'add', './origin', 'module')
  scene.git('commit', '--quiet', '--message', 'module')
  scene.write('module/file', 'two\n')
  rmSync(join(scene.root, 'origin'), { recursive: true })
  expect(await scene.get('git/status')).toMatchObject({ body: { files: [] } })
  expect(await scene.get('git/status?repo=module')).toMatchObject({ body: { files: [{ path: 'file' }] } })
  scene.gitIn('module', 'commit', '--quiet', '--all', '--message', 'second')
  expect(await scene.get('git/status')).toMatchObject({
    body: { files: [{ path: 'module', submodule: true, unstaged: 'M' }] },
  })
  expect(await scene.get('git/diff')).toMatchObject({
    body: { files: [{ path: 'module' }], diff: expect.stringContaining('+Subproject commit ') },
  })
  expect(await scene.get('git/show?path=module')).toMatchObject({ body: { error: { code: 'special_file' } } })
  expect(await scene.post('git/stage', { paths: ['module'] })).toMatchObject({ status: 200 })
  expect(await scene.get('git/status')).toMatchObject({ body: { files: [{ path: 'module', staged: 'M' }] } })
})

test.each(['file', 'link', 'common', 'relative'])(
  'what git keeps must lie in the workspace: not by a %s (threat T13)',
  async (way) => {
    using scene = createScene()
    scene.write('secret', 'outside')
    scene.git('add', '.')
    scene.git('commit', '--quiet', '--message', 'outside')
    const [inside, outside] = [join(scene.root, '.git'), join(scene.root, '../outside')]
    renameSync(inside, outside)
    if (way === 'file') writeFileSync(inside, `gitdir: ${outside}\n`)
    if (way === 'relative') writeFileSync(inside, 'gitdir: ../outside\n')
    if (way === 'link') symlinkSync(outside, inside)
    if (way === 'common') {
      mkdirSync(inside)
      cpSync(join(outside, 'HEAD'), join(inside, 'HEAD'))
      writeFileSync(join(inside, 'commondir'), `${outside}\n`)
    }
    // It would be a repository.
    expect(scene.git('log', '--format=%s')).toBe('outside\n')
    for (const route of ['git/status', 'git/log', 'git/show?path=secret', 'git/branches'])
      expect(await scene.get(route)).toMatchObject(NONE)
    expect(await scene.get('compat/git/status')).toEqual({
      status: 200,
      body: { is_repo: false, files: [] },
    })
  },
)

test('a link to a folder of the workspace is followed, one that leads out is refused (threat T13)', async () => {
  using scene = createScene({ isRepository: false })
  commitIn(scene, 'project')
  symlinkSync('project', join(scene.root, 'alias'))
  symlinkSync(scene.home, join(scene.root, 'away'))
  expect(await scene.get('git/log?repo=alias')).toMatchObject({ body: { commits: [{ message: 'first' }] } })
  expect(await scene.get('git/log?repo=away')).toMatchObject({
    status: 400,
    body: { error: { code: 'path_refused' } },
  })
})

test.skipIf(process.getuid?.() !== 0)('a repository may belong to somebody else', async () => {
  using scene = createScene()
  for (const path of ['.', '.git']) chownSync(join(scene.root, path), 12_345, 12_345)
  expect(() => scene.git('status')).toThrow('dubious ownership')
  expect(await scene.get('git/status')).toMatchObject({ status: 200 })
})

test('a repository whose configuration cannot be read says so', async () => {
  using scene = createScene()
  scene.write('.git/config', '[core\n')
  expect(await scene.get('git/status')).toMatchObject({
    status: 409,
    body: { error: { code: 'git_failed', message: expect.stringContaining('bad config line') } },
  })
})

test('no git is said as such', async () => {
  using scene = createScene({ spoil: (plan) => ({ ...plan, argv: ['no-such-git'] }) })
  expect(await scene.get('git/status')).toMatchObject({ body: { error: { code: 'command_not_found' } } })
  expect(await scene.get('compat/git/status')).toEqual({ status: 200, body: { is_repo: false, files: [] } })
})
