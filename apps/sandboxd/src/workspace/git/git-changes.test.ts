import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { createScene, type Scene } from './git-workspace.fixture.ts'

const DONE = { status: 200 }
const FAILED = { status: 409, body: { error: { code: 'git_failed' } } }

function createCommitted(...names: readonly string[]): Scene {
  const scene = createScene()
  for (const name of names) scene.write(name, 'one\n')
  scene.git('add', '.')
  scene.git('commit', '--quiet', '--allow-empty', '--message', 'first')
  return scene
}

const staged = ({ git }: Scene): string => git('diff', '--cached', '--name-status', '--no-renames')
const status = ({ git }: Scene): string => git('status', '--porcelain')
const read = ({ place }: Scene, path: string): string => readFileSync(place(path), 'utf8')

test('stages files, folders and what is gone', async () => {
  using scene = createCommitted('a', 'b', 'folder/c', 'folder/gone')
  scene.write('a', 'two\n')
  scene.write('b', 'two\n')
  rmSync(join(scene.root, 'folder/gone'))
  scene.write('folder/new', '')
  expect(await scene.post('git/stage', { paths: ['a', 'folder'] })).toMatchObject(DONE)
  expect(staged(scene)).toBe('M\ta\nD\tfolder/gone\nA\tfolder/new\n')
  expect(await scene.post('git/stage', { paths: ['.'] })).toMatchObject(DONE)
  expect(status(scene)).toBe('M  a\nM  b\nD  folder/gone\nA  folder/new\n')
})

test('stages what changed its kind, and the mode', async () => {
  using scene = createCommitted('file', 'folder/x')
  rmSync(join(scene.root, 'file'))
  scene.write('file/inner', '')
  rmSync(join(scene.root, 'folder'), { recursive: true })
  symlinkSync('/etc', join(scene.root, 'folder'))
  expect(await scene.post('git/stage', { paths: ['.'] })).toMatchObject(DONE)
  expect(staged(scene)).toBe('D\tfile\nA\tfile/inner\nA\tfolder\nD\tfolder/x\n')
  expect(scene.git('ls-files', '--stage', 'folder')).toStartWith('120000 ')
  expect(status(scene)).not.toContain('??')
})

test('stages all or nothing: what is missing or ignored refuses the rest', async () => {
  using scene = createCommitted('a')
  scene.write('.gitignore', 'ignored\n')
  for (const name of ['a', 'ignored']) scene.write(name, 'two\n')
  for (const name of ['missing', 'ignored', '.git/config', '.git'])
    expect(await scene.post('git/stage', { paths: ['a', name] })).toMatchObject(FAILED)
  expect(staged(scene)).toBe('')
  expect(await scene.post('git/stage', { paths: ['a'] })).toMatchObject(DONE)
  expect(await scene.post('git/stage', { paths: ['a'] })).toMatchObject(DONE)
})

test('stages the solution of a conflict, and a commit ends the merge', async () => {
  using scene = createCommitted('file', 'other')
  scene.git('checkout', '--quiet', '-b', 'theirs')
  scene.write('file', 'theirs\n')
  scene.git('rm', '--quiet', 'other')
  scene.git('commit', '--quiet', '--all', '--message', 'theirs')
  scene.git('checkout', '--quiet', 'main')
  for (const name of ['file', 'other']) scene.write(name, 'ours\n')
  scene.git('commit', '--quiet', '--all', '--message', 'ours')
  expect(() => scene.git('merge', 'theirs')).toThrow()
  expect(await scene.post('git/commit', { message: 'too early' })).toMatchObject(FAILED)
  scene.write('file', 'both\n')
  rmSync(join(scene.root, 'other'))
  expect(await scene.post('git/stage', { paths: ['file', 'other'] })).toMatchObject(DONE)
  expect(await scene.post('git/commit', { message: 'merged' })).toMatchObject(DONE)
  expect(scene.git('show', '--no-patch', '--format=%p').trim().split(' ')).toHaveLength(2)
  expect(await scene.get('git/status')).toMatchObject({ body: { state: null, files: [] } })
})

test('stages the solution of a conflict that is our own version', async () => {
  using scene = createCommitted('file')
  scene.git('checkout', '--quiet', '-b', 'theirs')
  scene.git('mv', 'file', 'their-name')
  scene.git('commit', '--quiet', '--message', 'theirs')
  scene.git('checkout', '--quiet', 'main')
  scene.git('mv', 'file', 'our-name')
  scene.git('commit', '--quiet', '--message', 'ours')
  expect(() => scene.git('merge', 'theirs')).toThrow()
  expect(status(scene)).toContain('AU our-name')
  expect(await scene.post('git/stage', { paths: ['our-name'] })).toMatchObject(DONE)
  expect(status(scene)).not.toContain('our-name')
})

test('a merge that changes nothing is concluded by a commit', async () => {
  using scene = createCommitted('file')
  scene.git('checkout', '--quiet', '-b', 'theirs')
  scene.git('commit', '--quiet', '--allow-empty', '--message', 'theirs')
  scene.git('checkout', '--quiet', 'main')
  scene.git('commit', '--quiet', '--allow-empty', '--message', 'ours')
  scene.git('merge', '--quiet', '--no-commit', '--no-ff', 'theirs')
  expect(await scene.post('git/commit', { message: 'merged' })).toMatchObject(DONE)
  expect(scene.git('show', '--no-patch', '--format=%p').trim().split(' ')).toHaveLength(2)
})

test('what is being written is neither shown nor staged', async () => {
  using scene = createCommitted('a')
  for (const name of ['.sandwire-1.part', 'folder/.sandwire-2.part', '.sandwire-3.part/inner', 'new'])
    scene.write(name, '')
  expect(await scene.get('git/status')).toMatchObject({
    body: { files: [{ path: 'folder/' }, { path: 'new' }] },
  })
  expect(await scene.post('git/stage', { paths: ['.'] })).toMatchObject(DONE)
  expect(staged(scene)).toBe('A\tnew\n')
  expect(await scene.post('git/stage', { paths: ['.sandwire-1.part'] })).toMatchObject(FAILED)
})

test('a repository in the folder is left alone unless it is named', async () => {
  using scene = createCommitted('a')
  mkdirSync(join(scene.root, 'nested'))
  scene.gitIn('nested', 'init', '--quiet')
  scene.gitIn('nested', 'commit', '--quiet', '--allow-empty', '--message', 'inner')
  expect(await scene.post('git/stage', { paths: ['.'] })).toMatchObject(DONE)
  expect(staged(scene)).toBe('')
  expect(await scene.post('git/discard', { paths: ['nested'], untracked: true })).toMatchObject(FAILED)
  expect(existsSync(join(scene.root, 'nested/.git/HEAD'))).toBe(true)
  expect(await scene.post('git/stage', { paths: ['nested'] })).toMatchObject(DONE)
  expect(staged(scene)).toBe('A\tnested\n')
})

test('unstages, in a repository without commits too', async () => {
  using scene = createScene()
  for (const name of ['a', '-b', '\u{dcff}']) scene.write(name, '')
  scene.git('add', '.')
  expect(await scene.post('git/unstage', { paths: ['-b', '\u{dcff}'] })).toMatchObject(DONE)
  expect(status(scene)).toBe('A  a\n?? -b\n?? "\\377"\n')
  scene.git('commit', '--quiet', '--message', 'first')
  scene.write('a', 'two\n')
  scene.git('add', '.')
  expect(await scene.post('git/unstage', { paths: ['.'] })).toMatchObject(DONE)
  expect(status(scene)).toBe(' M a\n?? -b\n?? "\\377"\n')
})

test('discards changes of tracked files and brings back what is gone', async () => {
  using scene = createCommitted('a', 'folder/b', '\u{dcff}')
  scene.write('a', 'two\n')
  scene.write('\u{dcff}', 'two\n')
  scene.write('folder/untracked', 'kept')
  rmSync(join(scene.root, 'folder/b'))
  expect(await scene.post('git/discard', { paths: ['a', 'folder', '\u{dcff}'], untracked: true })).toEqual({
    status: 200,
    body: { discarded: 3, removed: 0 },
  })
  for (const name of ['a', 'folder/b', '\u{dcff}']) expect(read(scene, name)).toBe('one\n')
  expect(read(scene, 'folder/untracked')).toBe('kept')
})

test.each([
  ['tracked attributes', '.gitattributes', true],
  ['attributes of the work tree alone', '.gitattributes', false],
  ['attributes of the repository itself', '.git/info/attributes', false],
] as const)('what a filter would have to bring back stays as it is, by %s', async (_, place, isTracked) => {
  using scene = createCommitted('a', 'b.bin')
  scene.write(place, '*.bin filter=z\n')
  if (isTracked) {
    scene.git('add', place)
    scene.git('commit', '--quiet', '--message', 'attributes')
    // What is in the index counts when files are brought back.
    rmSync(join(scene.root, place))
  }
  scene.git('config', 'filter.z.smudge', 'cat')
  for (const name of ['a', 'b.bin']) scene.write(name, 'two\n')
  expect(await scene.post('git/discard', { paths: ['.'] })).toEqual({
    status: 409,
    body: {
      error: {
        code: 'git_failed',
        message: 'Cannot discard "b.bin": a filter would have to bring it back, and none is run',
        request_id: expect.any(String),
      },
    },
  })
  expect([read(scene, 'a'), read(scene, 'b.bin')]).toEqual(['two\n', 'two\n'])
  expect(await scene.post('git/discard', { paths: ['a'] })).toMatchObject(DONE)
  expect(read(scene, 'a')).toBe('one\n')
})

test('discards to what is staged', async () => {
  using scene = createCommitted('a')
  scene.write('a', 'staged\n')
  scene.git('add', 'a')
  scene.write('a', 'not\n')
  expect(await scene.post('git/discard', { paths: ['a'] })).toMatchObject(DONE)
  expect(read(scene, 'a')).toBe('staged\n')
})

test('removes untracked files only when they are named and that is asked', async () => {
  using scene = createCommitted('a')
  scene.write('.gitignore', 'ignored\n')
  for (const name of ['new', 'folder/deep/x', 'folder/y', 'other/z', 'other/ignored', '\u{dcff}'])
    scene.write(name, '')
  expect(await scene.post('git/discard', { paths: ['new'] })).toMatchObject(FAILED)
  expect(await scene.post('git/discard', { paths: ['new', 'missing'], untracked: true })).toMatchObject(
    FAILED,
  )
  expect(await scene.post('git/discard', { paths: ['.'], untracked: true })).toMatchObject(DONE)
  expect(existsSync(join(scene.root, 'new'))).toBe(true)
  expect(
    await scene.post('git/discard', { paths: ['new', 'folder/deep', 'other', '\u{dcff}'], untracked: true }),
  ).toEqual({ status: 200, body: { discarded: 4, removed: 4 } })
  for (const name of ['new', 'folder/deep', 'other/z']) expect(existsSync(join(scene.root, name))).toBe(false)
  for (const name of ['folder/y', 'other/ignored']) expect(existsSync(join(scene.root, name))).toBe(true)
})

test('the whole of a workspace without commits is not removed', async () => {
  using scene = createScene()
  scene.write('a', '')
  expect(await scene.post('git/discard', { paths: ['.'], untracked: true })).toMatchObject(FAILED)
  expect(existsSync(join(scene.root, 'a'))).toBe(true)
})

test('nothing is changed through a link that leads out (threat T13)', async () => {
  using scene = createCommitted('folder/file', 'a')
  const outside = join(scene.home, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'file'), 'theirs')
  rmSync(join(scene.root, 'folder'), { recursive: true })
  symlinkSync(outside, join(scene.root, 'folder'))
  symlinkSync(outside, join(scene.root, 'link'))
  for (const path of ['link/file', 'folder/file', 'link'])
    await scene.post('git/discard', { paths: [path], untracked: true })
  await scene.post('git/stage', { paths: ['link/file'] })
  expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('theirs')
  // What was there before is back, in a folder again; the other link itself was untracked, and went.
  expect(lstatSync(join(scene.root, 'folder')).isDirectory()).toBe(true)
  expect(existsSync(join(scene.root, 'link'))).toBe(false)
})

test('commits what is staged, and nothing when nothing is', async () => {
  using scene = createCommitted('a')
  scene.write('a', 'two\n')
  expect(await scene.post('git/commit', { message: 'x' })).toMatchObject(FAILED)
  scene.git('add', 'a')
  const { body } = await scene.post('git/commit', { message: '  subject\n\n# not a comment 🦜\n' })
  expect(body).toEqual({ commit: scene.git('rev-parse', 'HEAD').trim() })
  expect(scene.git('show', '--no-patch', '--format=%B%an%ae')).toBe(
    '  subject\n\n# not a comment 🦜\nSomeonesomeone@example.test\n',
  )
})

test('commits before there is any', async () => {
  using scene = createScene()
  expect(await scene.post('git/commit', { message: 'x' })).toMatchObject(FAILED)
  scene.write('a', '')
  scene.git('add', 'a')
  expect(await scene.post('git/commit', { message: 'x' })).toMatchObject(DONE)
})

test('amends, and keeps the author unless another is named', async () => {
  using scene = createCommitted('a')
  const author = { name: 'Another', email: 'another@example.test' }
  scene.write('a', 'two\n')
  scene.git('add', 'a')
  expect(await scene.post('git/commit', { message: 'x', author })).toMatchObject(DONE)
  expect(await scene.post('git/commit', { message: 'y', amend: true })).toMatchObject(DONE)
  expect(scene.git('log', '-1', '--format=%s %an %cn')).toBe('y Another Someone\n')
  const third = { name: 'Third', email: 'third@example.test' }
  expect(await scene.post('git/commit', { message: 'y', amend: true, author: third })).toMatchObject(DONE)
  expect(scene.git('log', '-1', '--format=%an %ae')).toBe('Third third@example.test\n')
  expect(scene.git('rev-list', '--count', 'HEAD').trim()).toBe('2')
})

test('amends to a commit that changes nothing', async () => {
  using scene = createCommitted('a')
  for (const content of ['two\n', 'one\n']) {
    scene.write('a', content)
    scene.git('add', 'a')
    const amend = content === 'one\n'
    expect(await scene.post('git/commit', { message: 'x', amend })).toMatchObject(DONE)
  }
  expect(scene.git('rev-parse', 'HEAD^{tree}')).toBe(scene.git('rev-parse', 'HEAD~1^{tree}'))
})

test('commits without a configured identity only with an author', async () => {
  using scene = createScene()
  writeFileSync(join(scene.home, '.gitconfig'), '')
  scene.write('a', '')
  scene.git('add', 'a')
  expect(await scene.post('git/commit', { message: 'x' })).toMatchObject({
    ...FAILED,
    body: { error: { code: 'git_failed', reason: 'author_unknown' } },
  })
  const author = { name: 'Me', email: 'me@example.test' }
  expect(await scene.post('git/commit', { message: 'x', author })).toMatchObject(DONE)
  expect(scene.git('log', '--format=%an %ae %cn %ce')).toBe('Me me@example.test Me me@example.test\n')
})

test('says that another git is at work', async () => {
  using scene = createCommitted('a')
  scene.write('a', 'two\n')
  writeFileSync(join(scene.root, '.git/index.lock'), '')
  expect(await scene.post('git/stage', { paths: ['a'] })).toMatchObject({
    ...FAILED,
    body: { error: { message: expect.stringContaining('index.lock') } },
  })
})

test.each([
  ['stage', {}],
  ['stage', { paths: [] }],
  ['stage', { paths: 'a' }],
  ['stage', { paths: [1] }],
  ['stage', { paths: ['a'], force: true }],
  ['stage', { paths: ['../x'] }],
  ['stage', { paths: ['/etc/passwd'] }],
  ['unstage', { paths: ['a/../../x'] }],
  ['discard', { paths: ['a'], untracked: 'yes' }],
  ['discard', { paths: [''] }],
  ['commit', { message: ' \n' }],
  ['commit', { message: 'a\0b' }],
  ['commit', { message: 'x', author: 'Me <me@example.test>' }],
  ['commit', { message: 'x', author: { name: 'a\nb', email: 'x' } }],
  ['commit', { message: 'x', author: { name: 'a <b>', email: 'x' } }],
  ['commit', { message: 'x', author: { name: 'a', email: 'x', date: 'now' } }],
  ['commit', { message: 'x', amend: 1 }],
  ['commit', { message: 'x', repo: '..' }],
  ['commit', []],
] as const)('%s refuses %j by name', async (route, body) => {
  using scene = createScene()
  expect(await scene.post(`git/${route}`, body)).toMatchObject({ status: 400 })
})
