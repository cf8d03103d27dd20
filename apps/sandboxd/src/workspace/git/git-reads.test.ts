import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { encodePath } from '@sandwire/protocol'
import { readDiff } from './diff.ts'
import { openRepository } from './repository.ts'
import { createFixture, type Fixture } from './git-workspace.fixture.ts'
import { showFile, textOf } from './history.ts'
import { readStatus, STATUS_LIMITS } from './status.ts'

const changed = { kind: 'changed', staged: null, unstaged: null, submodule: false } as const

function createCommitted(files: Readonly<Record<string, string | Uint8Array>> = { file: 'one\n' }): Fixture {
  const fixture = createFixture()
  for (const [path, content] of Object.entries(files)) fixture.write(path, content)
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--message', 'first')
  return fixture
}

/** Two branches that change the same line. */
function createDivided(): Fixture {
  const fixture = createCommitted()
  fixture.git('checkout', '--quiet', '-b', 'theirs')
  fixture.write('file', 'theirs\n')
  fixture.git('commit', '--quiet', '--all', '--message', 'theirs')
  fixture.git('checkout', '--quiet', 'main')
  fixture.write('file', 'ours\n')
  fixture.git('commit', '--quiet', '--all', '--message', 'ours')
  return fixture
}

function attempt({ git }: Fixture, ...args: readonly string[]): void {
  expect(() => git(...args)).toThrow()
}

test('a repository without commits has only a branch', async () => {
  using fixture = createFixture()
  fixture.write('new', 'x')
  expect(await fixture.get('git/status')).toEqual({
    status: 200,
    body: {
      head: { branch: 'main' },
      state: null,
      files: [{ kind: 'untracked', path: 'new' }],
      truncated: false,
      untracked: true,
    },
  })
  expect((await fixture.get('git/log')).body).toEqual({ commits: [], truncated: false })
  expect((await fixture.get('git/branches')).body).toEqual({
    head: { branch: 'main' },
    branches: [],
    truncated: false,
  })
  for (const query of ['', '?staged=1'])
    expect((await fixture.get('git/diff', query)).body).toEqual({
      files: [],
      diff: '',
      lossy: false,
      truncated: false,
    })
  expect(await fixture.get('git/show', '?path=new')).toMatchObject({
    body: { error: { code: 'git_failed' } },
  })
})

test('status reports staged and unstaged changes and rename sources', async () => {
  using fixture = createCommitted({
    both: '1\n',
    gone: '2\n',
    old: 'a long enough line\n',
    link: 'x',
    kept: 'k',
  })
  fixture.write('both', 'index\n')
  fixture.git('add', 'both')
  fixture.write('both', 'tree\n')
  fixture.git('rm', '--quiet', 'gone')
  fixture.git('mv', 'old', 'renamed')
  fixture.git('rm', '--quiet', 'link')
  symlinkSync('kept', join(fixture.root, 'link'))
  fixture.git('add', 'link')
  fixture.write('folder/new', 'x')
  expect(await fixture.get('git/status')).toMatchObject({
    body: {
      files: [
        { ...changed, path: 'both', staged: 'M', unstaged: 'M' },
        { ...changed, path: 'gone', staged: 'D' },
        { ...changed, path: 'link', staged: 'T' },
        { ...changed, path: 'renamed', from: 'old', staged: 'R' },
        { kind: 'untracked', path: 'folder/' },
      ],
    },
  })
})

test('accepts every name that a file system allows', async () => {
  const names = [
    'with space',
    'new\nline',
    '🦜',
    '-rf',
    '"quoted"',
    '\\',
    '\u{dcff}\u{dc80}bytes',
    'tab\there',
  ]
  using fixture = createCommitted(Object.fromEntries(names.map((name) => [name, 'one\n'])))
  for (const name of names) fixture.write(name, 'two\n')
  const status = await fixture.get('git/status')
  const diff = await fixture.get('git/diff')
  for (const { body } of [status, diff])
    expect(body).toMatchObject({
      files: expect.arrayContaining(names.map((path) => expect.objectContaining({ path }))),
    })
  expect(await fixture.get('git/show', '?path=%FF%80bytes')).toMatchObject({ body: { content: 'one\n' } })
  expect(await fixture.get('git/log', '?path=%FF%80bytes')).toMatchObject({ body: { commits: [{}] } })
  expect(await fixture.get('git/diff', '?path=%FF%80bytes')).toMatchObject({
    body: { files: [{ path: '\u{dcff}\u{dc80}bytes', added: 1, removed: 1 }], lossy: false },
  })
})

test('status reports ahead, behind and a detached HEAD', async () => {
  using fixture = createCommitted()
  fixture.git('branch', 'base')
  fixture.git('branch', '--quiet', '--set-upstream-to', 'base')
  fixture.git('commit', '--quiet', '--allow-empty', '--message', 'ahead')
  expect(await fixture.get('git/status')).toMatchObject({
    body: { head: { branch: 'main', upstream: 'base', ahead: 1, behind: 0 } },
  })
  fixture.git('checkout', '--quiet', '--detach')
  const { body } = await fixture.get('git/status')
  expect(body).toMatchObject({ head: { oid: fixture.git('rev-parse', 'HEAD').trim() } })
  expect(body).not.toHaveProperty('head.branch')
})

test.each([
  ['merge', ['merge', 'theirs']],
  ['rebase', ['rebase', 'theirs']],
  ['rebase', ['rebase', '--apply', 'theirs']],
  ['cherry-pick', ['cherry-pick', 'theirs']],
  ['revert', ['revert', '--no-edit', 'HEAD~1']],
] as const)('status reports a %s in progress and its conflict', async (state, args) => {
  using fixture = createDivided()
  attempt(fixture, ...args)
  expect(await fixture.get('git/status')).toMatchObject({
    body: { state, files: [{ kind: 'conflict', path: 'file' }] },
  })
})

test('diff shows a file in conflict against our side', async () => {
  using fixture = createDivided()
  attempt(fixture, 'merge', 'theirs')
  expect(await fixture.get('git/diff')).toMatchObject({
    body: {
      files: [{ path: 'file', status: 'U', added: 4, removed: 0 }],
      diff: expect.stringContaining('+<<<<<<<'),
    },
  })
})

test('status reports a bisect and an am in progress', async () => {
  using fixture = createDivided()
  fixture.git('bisect', 'start')
  expect(await fixture.get('git/status')).toMatchObject({ body: { state: 'bisect' } })
  fixture.git('bisect', 'reset')
  fixture.write('mail', fixture.git('format-patch', '--stdout', '-1', 'theirs'))
  attempt(fixture, 'am', 'mail')
  expect(await fixture.get('git/status')).toMatchObject({ body: { state: 'am' } })
})

test('status limits its entries and reports truncation', async () => {
  using fixture = createFixture()
  for (let at = 0; at < 20; at += 1) fixture.write(`f${at}`, '')
  using repository = await openRepository(fixture)
  const few = await readStatus(repository, { ...STATUS_LIMITS, maxEntries: 5 })
  expect(few).toMatchObject({ truncated: true, head: { branch: 'main' } })
  expect(few.entries).toHaveLength(5)
  expect(await readStatus(repository, { ...STATUS_LIMITS, maxEntries: 20 })).toMatchObject({
    truncated: false,
  })
  expect(await readStatus(repository, { ...STATUS_LIMITS, maxBytes: 40 })).toMatchObject({ truncated: true })
})

test('status omits untracked files on timeout and reports it', async () => {
  using fixture = createFixture({
    spoil: (plan) =>
      plan.argv.includes('--untracked-files=normal') ? { ...plan, argv: ['sleep', '60'], timeMs: 20 } : plan,
  })
  fixture.write('staged', '')
  fixture.write('untracked', '')
  fixture.git('add', 'staged')
  expect(await fixture.get('git/status')).toMatchObject({
    body: { files: [{ path: 'staged', staged: 'A' }], untracked: false },
  })
})

test('status fails when tracked files time out', async () => {
  using fixture = createFixture({
    spoil: (plan) => (plan.argv.includes('status') ? { ...plan, argv: ['sleep', '60'], timeMs: 20 } : plan),
  })
  expect(await fixture.get('git/status')).toMatchObject({
    status: 504,
    body: { error: { code: 'timed_out' } },
  })
})

test('diff compares work tree, index and commits, one path or all', async () => {
  using fixture = createCommitted({ a: 'one\n', b: 'one\n' })
  fixture.write('a', 'two\n')
  fixture.git('add', 'a')
  fixture.write('a', 'three\n')
  fixture.write('b', 'two\n')
  const paths = async (query: string): Promise<unknown> => (await fixture.get('git/diff', query)).body
  const file = (path: string): unknown =>
    expect.objectContaining({ path, added: 1, removed: 1, binary: false })
  expect(await paths('')).toMatchObject({ files: [file('a'), file('b')] })
  expect(await paths('?path=b')).toMatchObject({
    files: [file('b')],
    diff: expect.stringContaining('-one\n+two\n'),
  })
  expect(await paths('?staged=1')).toMatchObject({
    files: [file('a')],
    diff: expect.stringContaining('-one\n+two\n'),
  })
  expect(await paths('?from=HEAD&path=a')).toMatchObject({ diff: expect.stringContaining('-one\n+three\n') })
  fixture.git('commit', '--quiet', '--message', 'second')
  expect(await paths('?from=HEAD~1&to=HEAD')).toMatchObject({ files: [file('a')] })
  expect(await paths('?from=HEAD~1&staged=1')).toMatchObject({ files: [file('a')] })
  expect(await paths('?to=HEAD')).toMatchObject({ files: [file('a')] })
  expect(await fixture.get('git/diff', '?to=HEAD&staged=1')).toMatchObject({ status: 400 })
  expect(await fixture.get('git/diff', '?from=nothing')).toMatchObject({
    body: { error: { code: 'git_failed' } },
  })
})

test.each(['sha1', 'sha256'])(
  'diff shows the first commit against nothing, in a %s repository',
  async (format) => {
    using fixture = createFixture({ isRepository: false })
    fixture.git('init', '--quiet', `--object-format=${format}`)
    fixture.write('a', 'one\n')
    fixture.git('add', '.')
    fixture.git('commit', '--quiet', '--message', 'first')
    const added = { path: 'a', status: 'A', added: 1, removed: 0, binary: false }
    expect((await fixture.get('git/diff', '?to=HEAD')).body).toMatchObject({ files: [added] })
    expect((await fixture.get('git/diff', '?to=HEAD&path=a')).body).toMatchObject({ files: [added] })
  },
)

test('diff of a renamed file needs its old path, with any bytes', async () => {
  const [old, other] = ['old\udcff', 'new\udcff']
  using fixture = createCommitted({ 'a.txt': 'one\ntwo\nthree\n', [old]: 'four\nfive\nsix\n' })
  fixture.git('mv', 'a.txt', 'b.txt')
  renameSync(fixture.pathOf(old), fixture.pathOf(other))
  fixture.git('add', '.')
  const requestDiff = async (path: string, from?: string): Promise<unknown> => {
    const more = from === undefined ? '' : `&old=${encodePath(from)}`
    return (await fixture.get('git/diff', `?staged=1&path=${encodePath(path)}${more}`)).body
  }
  expect(await requestDiff('b.txt')).toMatchObject({ files: [{ path: 'b.txt', status: 'A', added: 3 }] })
  const renamed = { path: 'b.txt', from: 'a.txt', status: 'R', added: 0, removed: 0 }
  expect(await requestDiff('b.txt', 'a.txt')).toMatchObject({ files: [renamed] })
  expect(await requestDiff(other, old)).toMatchObject({ files: [{ path: other, from: old, status: 'R' }] })
  expect(await fixture.get('git/diff', '?old=a.txt')).toMatchObject({ status: 400 })
})

test('diff marks binary files and replaced bytes', async () => {
  using fixture = createCommitted({ binary: Uint8Array.of(0, 1), latin: Uint8Array.of(0xe4, 10) })
  fixture.write('binary', Uint8Array.of(0, 2))
  fixture.write('latin', Uint8Array.of(0xfc, 10))
  expect((await fixture.get('git/diff', '?path=binary')).body).toMatchObject({
    files: [{ path: 'binary', binary: true, added: 0 }],
    diff: expect.stringContaining('Binary files a/binary and b/binary differ'),
    lossy: false,
  })
  expect((await fixture.get('git/diff', '?path=latin')).body).toMatchObject({ lossy: true })
})

test('a truncated diff ends at a whole line and reports the limit', async () => {
  using fixture = createCommitted({ a: '', b: '' })
  fixture.write('a', 'line of text\n'.repeat(10_000))
  fixture.write('b', 'x\n')
  using repository = await openRepository(fixture)
  const limits = { maxFiles: 10, maxBytes: 1000, timeMs: 20_000 }
  const cut = await readDiff(repository, { staged: false }, limits)
  expect(cut).toMatchObject({ truncated: 'bytes', isLossy: false })
  expect(cut.text).toEndWith('\n+line of text\n')
  expect(cut.files.map(({ path }) => path)).toEqual(['a', 'b'])
  const few = await readDiff(repository, { staged: false }, { ...limits, maxFiles: 1, maxBytes: 1_000_000 })
  expect(few).toMatchObject({ truncated: 'files' })
  expect(few.files).toHaveLength(1)
})

test('a diff that times out returns its start and reports the limit', async () => {
  using fixture = createFixture({
    spoil: (plan) => (plan.argv.includes('diff') ? { ...plan, argv: ['sleep', '60'], timeMs: 20 } : plan),
  })
  expect(await fixture.get('git/diff')).toMatchObject({ body: { files: [], diff: '', truncated: 'time' } })
})

test('a page of the log ends early where messages are long', async () => {
  using fixture = createFixture()
  for (let at = 0; at < 70; at += 1)
    fixture.git('commit', '--quiet', '--allow-empty', '--message', `${at} ${'x'.repeat(70_000)}`)
  const { body } = await fixture.get('git/log', '?limit=70')
  const { commits, truncated } = body as { commits: { message: string }[]; truncated: boolean }
  expect(truncated).toBe(true)
  expect(commits.length).toBeLessThan(70)
  expect(commits[0]?.message).toHaveLength(64 * 1024)
})

test('diff does not depend on the configuration', async () => {
  using fixture = createCommitted({ a: 'one\n' })
  fixture.write('a', 'two\n')
  const plain = await fixture.get('git/diff')
  const settings = {
    'color.ui': 'always',
    'diff.noprefix': 'true',
    'diff.context': '0',
    'core.quotePath': 'false',
  }
  const more = { 'diff.orderFile': '/nowhere', 'diff.algorithm': 'patience', 'diff.relative': 'true' }
  for (const [key, value] of Object.entries({ ...settings, ...more })) fixture.git('config', key, value)
  expect(await fixture.get('git/diff')).toEqual(plain)
})

test('show returns a file at a commit, as text or base64', async () => {
  using fixture = createCommitted({ text: 'ä\n', binary: Uint8Array.of(0, 0xff), 'folder/x': '' })
  symlinkSync('text', join(fixture.root, 'link'))
  fixture.git('add', 'link')
  fixture.git('commit', '--quiet', '--message', 'link')
  fixture.write('text', 'later')
  const commit = fixture.git('rev-parse', 'HEAD').trim()
  expect((await fixture.get('git/show', '?path=./text')).body).toEqual({
    path: 'text',
    commit,
    kind: 'file',
    size: 3,
    encoding: 'utf-8',
    content: 'ä\n',
    truncated: false,
  })
  const shows = (query: string): Promise<unknown> => fixture.get('git/show', query)
  expect(await shows('?path=binary')).toMatchObject({ body: { encoding: 'base64', content: 'AP8=' } })
  expect(await shows('?path=link')).toMatchObject({ body: { kind: 'link', content: 'text' } })
  expect(await shows('?path=link&ref=HEAD~1')).toMatchObject({ body: { error: { code: 'file_not_found' } } })
  expect(await shows('?path=folder')).toMatchObject({ body: { error: { code: 'is_a_folder' } } })
  expect(await shows('?path=.')).toMatchObject({ body: { error: { code: 'is_a_folder' } } })
  expect(await shows('?path=text&ref=nothing')).toMatchObject({ body: { error: { code: 'git_failed' } } })
  expect(await shows('')).toMatchObject({ status: 400 })
})

test('show returns the start of a large file as text', async () => {
  using fixture = createCommitted({ file: 'ä'.repeat(1000) })
  using repository = await openRepository(fixture)
  const shown = await showFile(repository, { path: 'file', ref: 'HEAD' }, 101)
  expect(shown).toMatchObject({ truncated: true, sizeBytes: 2000 })
  expect(shown.bytes).toHaveLength(101)
  expect(textOf(shown)).toBe('ä'.repeat(50))
})

test('log lists every commit once, page by page', async () => {
  using fixture = createDivided()
  fixture.git('merge', '--quiet', '--strategy', 'ours', '--message', 'merged', 'theirs')
  fixture.git('commit', '--quiet', '--allow-empty', '--message', 'empty\n\nbody')
  const all = fixture.git('log', '--format=%H').trim().split('\n')
  const found: string[] = []
  let after = ''
  for (let page = 0; page < all.length; page += 1) {
    const { body } = await fixture.get('git/log', `?limit=1${after}`)
    const { commits, truncated } = body as { commits: { oid: string }[]; truncated: boolean }
    found.push(...commits.map(({ oid }) => oid))
    after = `&after=${found.at(-1) ?? ''}`
    expect(truncated).toBe(page < all.length - 1)
  }
  expect(found).toEqual(all)
  expect(await fixture.get('git/log', `?after=${'0'.repeat(40)}`)).toMatchObject({
    body: { error: { code: 'git_failed' } },
  })
})

test('log reports author, time, message and refs', async () => {
  using fixture = createCommitted()
  fixture.git('config', 'user.name', 'Zoë \u{202e}')
  fixture.write('file', 'two\n')
  fixture.git(
    'commit',
    '--quiet',
    '--all',
    '--date',
    '2001-02-03T04:05:06Z',
    '--message',
    'subject\n\n# body\n',
  )
  fixture.git('tag', 'v1')
  expect(await fixture.get('git/log', '?limit=1')).toMatchObject({
    body: {
      commits: [
        {
          author: {
            name: 'Zoë \u{202e}',
            email: 'someone@example.test',
            timeMs: Date.UTC(2001, 1, 3, 4, 5, 6),
          },
          committer: { name: 'Zoë \u{202e}' },
          parents: [fixture.git('rev-parse', 'HEAD~1').trim()],
          refs: ['HEAD -> main', 'tag: v1'],
          message: 'subject\n\n# body',
        },
      ],
      truncated: true,
    },
  })
  fixture.write('other', '')
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--message', 'other')
  expect(await fixture.get('git/log', '?path=other')).toMatchObject({
    body: { commits: [{ message: 'other' }] },
  })
  expect(await fixture.get('git/log', '?ref=v1&limit=1')).toMatchObject({
    body: { commits: [{ message: 'subject\n\n# body' }] },
  })
})

test('a file named like a commit is not taken for the commit', async () => {
  using fixture = createCommitted()
  const oid = fixture.git('rev-parse', 'HEAD').trim()
  for (const name of [oid, 'HEAD', 'main']) fixture.write(name, '')
  expect(await fixture.get('git/log', '?ref=main')).toMatchObject({ body: { commits: [{ oid }] } })
  expect(await fixture.get('git/diff', '?from=main&to=HEAD')).toMatchObject({ status: 200 })
})

test('lists local and remote branches with their upstream, most recent first', async () => {
  using fixture = createCommitted()
  mkdirSync(join(fixture.root, '../far'))
  fixture.git('init', '--quiet', '--bare', '../far')
  fixture.git('remote', 'add', 'origin', '../far')
  fixture.git('push', '--quiet', '--set-upstream', 'origin', 'main')
  fixture.git('remote', 'set-head', 'origin', 'main')
  fixture.git('checkout', '--quiet', '-b', 'ä/🦜')
  fixture.git(
    '-c',
    'user.name=x',
    'commit',
    '--quiet',
    '--allow-empty',
    '--message',
    'one | two',
    '--date',
    '2030-01-01',
  )
  const { body } = await fixture.get('git/branches')
  expect(body).toMatchObject({
    head: { branch: 'ä/🦜', oid: fixture.git('rev-parse', 'HEAD').trim() },
    truncated: false,
  })
  expect(body).toMatchObject({
    branches: expect.arrayContaining([
      expect.objectContaining({ name: 'ä/🦜', kind: 'local', subject: 'one | two' }),
      expect.objectContaining({ name: 'main', kind: 'local', upstream: 'origin/main' }),
      expect.objectContaining({ name: 'origin/main', kind: 'remote' }),
    ]),
  })
  fixture.git('checkout', '--quiet', '--detach')
  expect((await fixture.get('git/branches')).body).not.toHaveProperty('head.branch')
})
