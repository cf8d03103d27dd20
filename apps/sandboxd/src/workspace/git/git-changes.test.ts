import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import type { ToolPlan } from '../tool.ts'
import { createFixture, type Fixture } from './git-workspace.fixture.ts'

const DONE = { status: 200 }
const FAILED = { status: 409, body: { error: { code: 'git_failed' } } }

function createCommitted(...names: readonly string[]): Fixture {
  return commitAll(createFixture(), names)
}

function commitAll(fixture: Fixture, names: readonly string[]): Fixture {
  for (const name of names) fixture.write(name, 'one\n')
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--allow-empty', '--message', 'first')
  return fixture
}

const staged = ({ git }: Fixture): string => git('diff', '--cached', '--name-status', '--no-renames')
const status = ({ git }: Fixture): string => git('status', '--porcelain')
const read = ({ pathOf }: Fixture, path: string): string => readFileSync(pathOf(path), 'utf8')

test('stages files, folders and removed files', async () => {
  using fixture = createCommitted('a', 'b', 'folder/c', 'folder/gone')
  fixture.write('a', 'two\n')
  fixture.write('b', 'two\n')
  rmSync(join(fixture.root, 'folder/gone'))
  fixture.write('folder/new', '')
  expect(await fixture.post('git/stage', { paths: ['a', 'folder'] })).toMatchObject(DONE)
  expect(staged(fixture)).toBe('M\ta\nD\tfolder/gone\nA\tfolder/new\n')
  expect(await fixture.post('git/stage', { paths: ['.'] })).toMatchObject(DONE)
  expect(status(fixture)).toBe('M  a\nM  b\nD  folder/gone\nA  folder/new\n')
})

test('stages changes of type and mode', async () => {
  using fixture = createCommitted('file', 'folder/x')
  rmSync(join(fixture.root, 'file'))
  fixture.write('file/inner', '')
  rmSync(join(fixture.root, 'folder'), { recursive: true })
  symlinkSync('/etc', join(fixture.root, 'folder'))
  expect(await fixture.post('git/stage', { paths: ['.'] })).toMatchObject(DONE)
  expect(staged(fixture)).toBe('D\tfile\nA\tfile/inner\nA\tfolder\nD\tfolder/x\n')
  expect(fixture.git('ls-files', '--stage', 'folder')).toStartWith('120000 ')
  expect(status(fixture)).not.toContain('??')
})

test('stages all or nothing when a path is missing or ignored', async () => {
  using fixture = createCommitted('a')
  fixture.write('.gitignore', 'ignored\n')
  for (const name of ['a', 'ignored']) fixture.write(name, 'two\n')
  for (const name of ['missing', 'ignored', '.git/config', '.git'])
    expect(await fixture.post('git/stage', { paths: ['a', name] })).toMatchObject(FAILED)
  expect(staged(fixture)).toBe('')
  expect(await fixture.post('git/stage', { paths: ['a'] })).toMatchObject(DONE)
  expect(await fixture.post('git/stage', { paths: ['a'] })).toMatchObject(DONE)
})

test('stages the resolution of a conflict, and a commit ends the merge', async () => {
  using fixture = createCommitted('file', 'other')
  fixture.git('checkout', '--quiet', '-b', 'theirs')
  fixture.write('file', 'theirs\n')
  fixture.git('rm', '--quiet', 'other')
  fixture.git('commit', '--quiet', '--all', '--message', 'theirs')
  fixture.git('checkout', '--quiet', 'main')
  for (const name of ['file', 'other']) fixture.write(name, 'ours\n')
  fixture.git('commit', '--quiet', '--all', '--message', 'ours')
  expect(() => fixture.git('merge', 'theirs')).toThrow()
  expect(await fixture.post('git/commit', { message: 'too early' })).toMatchObject(FAILED)
  fixture.write('file', 'both\n')
  rmSync(join(fixture.root, 'other'))
  expect(await fixture.post('git/stage', { paths: ['file', 'other'] })).toMatchObject(DONE)
  expect(await fixture.post('git/commit', { message: 'merged' })).toMatchObject(DONE)
  expect(fixture.git('show', '--no-patch', '--format=%p').trim().split(' ')).toHaveLength(2)
  expect(await fixture.get('git/status')).toMatchObject({ body: { state: null, files: [] } })
})

test('stages our own version as the resolution of a conflict', async () => {
  using fixture = createCommitted('file')
  fixture.git('checkout', '--quiet', '-b', 'theirs')
  fixture.git('mv', 'file', 'their-name')
  fixture.git('commit', '--quiet', '--message', 'theirs')
  fixture.git('checkout', '--quiet', 'main')
  fixture.git('mv', 'file', 'our-name')
  fixture.git('commit', '--quiet', '--message', 'ours')
  expect(() => fixture.git('merge', 'theirs')).toThrow()
  expect(status(fixture)).toContain('AU our-name')
  expect(await fixture.post('git/stage', { paths: ['our-name'] })).toMatchObject(DONE)
  expect(status(fixture)).not.toContain('our-name')
})

test('a commit concludes a merge without changes', async () => {
  using fixture = createCommitted('file')
  fixture.git('checkout', '--quiet', '-b', 'theirs')
  fixture.git('commit', '--quiet', '--allow-empty', '--message', 'theirs')
  fixture.git('checkout', '--quiet', 'main')
  fixture.git('commit', '--quiet', '--allow-empty', '--message', 'ours')
  fixture.git('merge', '--quiet', '--no-commit', '--no-ff', 'theirs')
  expect(await fixture.post('git/commit', { message: 'merged' })).toMatchObject(DONE)
  expect(fixture.git('show', '--no-patch', '--format=%p').trim().split(' ')).toHaveLength(2)
})

test('neither shows nor stages temporary files', async () => {
  using fixture = createCommitted('a')
  for (const name of ['.sandwire-1.part', 'folder/.sandwire-2.part', '.sandwire-3.part/inner', 'new'])
    fixture.write(name, '')
  expect(await fixture.get('git/status')).toMatchObject({
    body: { files: [{ path: 'folder/' }, { path: 'new' }] },
  })
  expect(await fixture.post('git/stage', { paths: ['.'] })).toMatchObject(DONE)
  expect(staged(fixture)).toBe('A\tnew\n')
  expect(await fixture.post('git/stage', { paths: ['.sandwire-1.part'] })).toMatchObject(FAILED)
})

test('does not touch a nested repository unless it is named', async () => {
  using fixture = createCommitted('a')
  mkdirSync(join(fixture.root, 'nested'))
  fixture.gitIn('nested', 'init', '--quiet')
  fixture.gitIn('nested', 'commit', '--quiet', '--allow-empty', '--message', 'inner')
  expect(await fixture.post('git/stage', { paths: ['.'] })).toMatchObject(DONE)
  expect(staged(fixture)).toBe('')
  expect(await fixture.post('git/discard', { paths: ['nested'], untracked: true })).toMatchObject(FAILED)
  expect(existsSync(join(fixture.root, 'nested/.git/HEAD'))).toBe(true)
  expect(await fixture.post('git/stage', { paths: ['nested'] })).toMatchObject(DONE)
  expect(staged(fixture)).toBe('A\tnested\n')
})

test('unstages, in a repository without commits too', async () => {
  using fixture = createFixture()
  for (const name of ['a', '-b', '\u{dcff}']) fixture.write(name, '')
  fixture.git('add', '.')
  expect(await fixture.post('git/unstage', { paths: ['-b', '\u{dcff}'] })).toMatchObject(DONE)
  expect(status(fixture)).toBe('A  a\n?? -b\n?? "\\377"\n')
  fixture.git('commit', '--quiet', '--message', 'first')
  fixture.write('a', 'two\n')
  fixture.git('add', '.')
  expect(await fixture.post('git/unstage', { paths: ['.'] })).toMatchObject(DONE)
  expect(status(fixture)).toBe(' M a\n?? -b\n?? "\\377"\n')
})

test('discards changes of tracked files and restores removed ones', async () => {
  using fixture = createCommitted('a', 'folder/b', '\u{dcff}')
  fixture.write('a', 'two\n')
  fixture.write('\u{dcff}', 'two\n')
  fixture.write('folder/untracked', 'kept')
  rmSync(join(fixture.root, 'folder/b'))
  expect(await fixture.post('git/discard', { paths: ['a', 'folder', '\u{dcff}'], untracked: true })).toEqual({
    status: 200,
    body: { discarded: 3, removed: 0 },
  })
  for (const name of ['a', 'folder/b', '\u{dcff}']) expect(read(fixture, name)).toBe('one\n')
  expect(read(fixture, 'folder/untracked')).toBe('kept')
})

test.each([
  ['tracked attributes', '.gitattributes', true],
  ['attributes of the work tree alone', '.gitattributes', false],
  ['attributes of the repository itself', '.git/info/attributes', false],
] as const)('does not discard a file that needs a filter, by %s', async (_, attributesFile, isTracked) => {
  using fixture = createCommitted('a', 'b.bin')
  fixture.write(attributesFile, '*.bin filter=z\n')
  if (isTracked) {
    fixture.git('add', attributesFile)
    fixture.git('commit', '--quiet', '--message', 'attributes')
    // Attributes in the index apply when files are restored.
    rmSync(join(fixture.root, attributesFile))
  }
  fixture.git('config', 'filter.z.smudge', 'cat')
  for (const name of ['a', 'b.bin']) fixture.write(name, 'two\n')
  expect(await fixture.post('git/discard', { paths: ['.'] })).toEqual({
    status: 409,
    body: {
      error: {
        code: 'git_failed',
        message: 'Cannot discard "b.bin": it needs a filter, and filters are not run',
        request_id: expect.any(String),
      },
    },
  })
  expect([read(fixture, 'a'), read(fixture, 'b.bin')]).toEqual(['two\n', 'two\n'])
  expect(await fixture.post('git/discard', { paths: ['a'] })).toMatchObject(DONE)
  expect(read(fixture, 'a')).toBe('one\n')
})

test('discards to what is staged', async () => {
  using fixture = createCommitted('a')
  fixture.write('a', 'staged\n')
  fixture.git('add', 'a')
  fixture.write('a', 'not\n')
  expect(await fixture.post('git/discard', { paths: ['a'] })).toMatchObject(DONE)
  expect(read(fixture, 'a')).toBe('staged\n')
})

test('removes untracked files only when named and requested', async () => {
  using fixture = createCommitted('a')
  fixture.write('.gitignore', 'ignored\n')
  for (const name of ['new', 'folder/deep/x', 'folder/y', 'other/z', 'other/ignored', '\u{dcff}'])
    fixture.write(name, '')
  expect(await fixture.post('git/discard', { paths: ['new'] })).toMatchObject(FAILED)
  expect(await fixture.post('git/discard', { paths: ['new', 'missing'], untracked: true })).toMatchObject(
    FAILED,
  )
  expect(await fixture.post('git/discard', { paths: ['.'], untracked: true })).toMatchObject(DONE)
  expect(existsSync(join(fixture.root, 'new'))).toBe(true)
  expect(
    await fixture.post('git/discard', {
      paths: ['new', 'folder/deep', 'other', '\u{dcff}'],
      untracked: true,
    }),
  ).toEqual({ status: 200, body: { discarded: 4, removed: 4 } })
  for (const name of ['new', 'folder/deep', 'other/z'])
    expect(existsSync(join(fixture.root, name))).toBe(false)
  for (const name of ['folder/y', 'other/ignored']) expect(existsSync(join(fixture.root, name))).toBe(true)
})

test('does not remove a whole workspace without commits', async () => {
  using fixture = createFixture()
  fixture.write('a', '')
  expect(await fixture.post('git/discard', { paths: ['.'], untracked: true })).toMatchObject(FAILED)
  expect(existsSync(join(fixture.root, 'a'))).toBe(true)
})

test('changes nothing through a link that leads outside (threat T13)', async () => {
  using fixture = createCommitted('folder/file', 'a')
  const outside = join(fixture.home, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'file'), 'theirs')
  rmSync(join(fixture.root, 'folder'), { recursive: true })
  symlinkSync(outside, join(fixture.root, 'folder'))
  symlinkSync(outside, join(fixture.root, 'link'))
  for (const path of ['link/file', 'folder/file', 'link'])
    await fixture.post('git/discard', { paths: [path], untracked: true })
  await fixture.post('git/stage', { paths: ['link/file'] })
  expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('theirs')
  // The former content is restored, in a folder again; the other link was untracked and was removed.
  expect(lstatSync(join(fixture.root, 'folder')).isDirectory()).toBe(true)
  expect(existsSync(join(fixture.root, 'link'))).toBe(false)
})

test('commits what is staged and refuses an empty commit', async () => {
  using fixture = createCommitted('a')
  fixture.write('a', 'two\n')
  expect(await fixture.post('git/commit', { message: 'x' })).toMatchObject(FAILED)
  fixture.git('add', 'a')
  const { body } = await fixture.post('git/commit', { message: '  subject\n\n# not a comment 🦜\n' })
  expect(body).toEqual({ commit: fixture.git('rev-parse', 'HEAD').trim() })
  expect(fixture.git('show', '--no-patch', '--format=%B%an%ae')).toBe(
    '  subject\n\n# not a comment 🦜\nSomeonesomeone@example.test\n',
  )
})

test('makes the first commit', async () => {
  using fixture = createFixture()
  expect(await fixture.post('git/commit', { message: 'x' })).toMatchObject(FAILED)
  fixture.write('a', '')
  fixture.git('add', 'a')
  expect(await fixture.post('git/commit', { message: 'x' })).toMatchObject(DONE)
})

test('amends, and keeps the author unless another is named', async () => {
  using fixture = createCommitted('a')
  const author = { name: 'Another', email: 'another@example.test' }
  fixture.write('a', 'two\n')
  fixture.git('add', 'a')
  expect(await fixture.post('git/commit', { message: 'x', author })).toMatchObject(DONE)
  expect(await fixture.post('git/commit', { message: 'y', amend: true })).toMatchObject(DONE)
  expect(fixture.git('log', '-1', '--format=%s %an %cn')).toBe('y Another Someone\n')
  const third = { name: 'Third', email: 'third@example.test' }
  expect(await fixture.post('git/commit', { message: 'y', amend: true, author: third })).toMatchObject(DONE)
  expect(fixture.git('log', '-1', '--format=%an %ae')).toBe('Third third@example.test\n')
  expect(fixture.git('rev-list', '--count', 'HEAD').trim()).toBe('2')
})

test('amends to an empty commit', async () => {
  using fixture = createCommitted('a')
  for (const content of ['two\n', 'one\n']) {
    fixture.write('a', content)
    fixture.git('add', 'a')
    const amend = content === 'one\n'
    expect(await fixture.post('git/commit', { message: 'x', amend })).toMatchObject(DONE)
  }
  expect(fixture.git('rev-parse', 'HEAD^{tree}')).toBe(fixture.git('rev-parse', 'HEAD~1^{tree}'))
})

test('commits without a configured identity only with an author', async () => {
  using fixture = createFixture()
  writeFileSync(join(fixture.home, '.gitconfig'), '')
  fixture.write('a', '')
  fixture.git('add', 'a')
  expect(await fixture.post('git/commit', { message: 'x' })).toMatchObject({
    ...FAILED,
    body: { error: { code: 'git_failed', reason: 'author_unknown' } },
  })
  const author = { name: 'Me', email: 'me@example.test' }
  expect(await fixture.post('git/commit', { message: 'x', author })).toMatchObject(DONE)
  expect(fixture.git('log', '--format=%an %ae %cn %ce')).toBe('Me me@example.test Me me@example.test\n')
})

const LOCKED = { ...FAILED, body: { error: { message: expect.stringContaining('index.lock') } } }

/** Creates the lock of the index or of another file, some minutes ago. */
function lockIndex({ root }: Fixture, minutes: number, name = 'index'): void {
  const lock = join(root, `.git/${name}.lock`)
  writeFileSync(lock, '')
  const seconds = Date.now() / 1000 - 60 * minutes
  utimesSync(lock, seconds, seconds)
}

test('reports a lock of another git', async () => {
  using fresh = createCommitted('a')
  using held = commitAll(createFixture({ hasGit: true }), ['a'])
  lockIndex(fresh, 0)
  lockIndex(held, 60)
  for (const fixture of [fresh, held]) {
    fixture.write('a', 'two\n')
    expect(await fixture.post('git/stage', { paths: ['a'] })).toMatchObject(LOCKED)
    expect(existsSync(join(fixture.root, '.git/index.lock'))).toBe(true)
  }
})

test('removes a lock that a killed git has left behind', async () => {
  using fixture = createCommitted('a')
  fixture.write('a', 'two\n')
  for (const [route, body] of [
    ['git/stage', { paths: ['a'] }],
    ['git/unstage', { paths: ['a'] }],
    ['git/stage', { paths: ['a'] }],
    ['git/commit', { message: 'x' }],
  ] as const) {
    lockIndex(fixture, 2)
    expect(await fixture.post(route, body)).toMatchObject(DONE)
    expect(existsSync(join(fixture.root, '.git/index.lock'))).toBe(false)
  }
})

test.each(['HEAD', 'refs/heads/main'])(
  'removes a lock of %s that a killed git has left behind',
  async (name) => {
    using fixture = createCommitted('a')
    fixture.git('branch', '-M', 'main')
    fixture.write('a', 'two\n')
    expect(await fixture.post('git/stage', { paths: ['a'] })).toMatchObject(DONE)
    lockIndex(fixture, 0, name)
    expect(await fixture.post('git/commit', { message: 'x' })).toMatchObject(FAILED)
    lockIndex(fixture, 2, name)
    expect(await fixture.post('git/commit', { message: 'x' })).toMatchObject(DONE)
    expect(existsSync(join(fixture.root, `.git/${name}.lock`))).toBe(false)
  },
)

test('removes the lock of its own git when that was killed', async () => {
  const isChange = ({ argv }: ToolPlan): boolean => argv.includes('update-index')
  const script = 'touch .git/index.lock; kill -KILL $$'
  const spoil = (plan: ToolPlan): ToolPlan =>
    isChange(plan) ? { ...plan, argv: ['sh', '-c', script] } : plan
  using fixture = commitAll(createFixture({ spoil }), ['a'])
  fixture.write('a', 'two\n')
  expect(await fixture.post('git/stage', { paths: ['a'] })).toMatchObject(FAILED)
  expect(existsSync(join(fixture.root, '.git/index.lock'))).toBe(false)
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
] as const)('%s refuses %j and names the field', async (route, body) => {
  using fixture = createFixture()
  expect(await fixture.post(`git/${route}`, body)).toMatchObject({ status: 400 })
})
