import {
  chmodSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { expect, test } from 'bun:test'
import { Random } from '@sandwire/testing'
import { TreeFixture } from './base-tree.fixture.ts'
import { compareRandomTrees } from './random-tree.fixture.ts'

/** The recorded base, then the change, then the diff, which must make of the base what the workspace has. */
async function compare(
  fixture: TreeFixture,
  change: () => void,
  missing: readonly string[] = [],
): Promise<Awaited<ReturnType<TreeFixture['makeDiff']>>> {
  const base = await fixture.recordBase()
  change()
  const facts = await fixture.makeDiff(base)
  const applied = fixture.applied(base)
  expect(applied.treeHash).toBe(facts.treeHash)
  const expected = [...fixture.walk()].filter(([name]) => !missing.includes(name))
  expect(Object.fromEntries(applied.entries)).toEqual(Object.fromEntries(expected))
  return facts
}

function createRepository(fixture: TreeFixture): void {
  fixture.git('init', '-q', '-b', 'main')
  for (const name of ['same', 'edited', 'deleted', 'moved', 'to-folder', 'to-link', 'to-exec', 'crlf'])
    fixture.write(name, `${name}\n`.repeat(20))
  fixture.write('folder/a', 'a\n')
  fixture.write('folder/b', 'b\n')
  fixture.write(
    'binary',
    Uint8Array.from({ length: 300 }, (_, at) => at % 256),
  )
  fixture.write('tool', '#!/bin/sh\n', 0o755)
  fixture.write('.gitignore', 'out/\n*.log\n')
  fixture.write('tracked.log', 'tracked\n')
  symlinkSync('same', fixture.at('link'))
  fixture.git('add', '-A')
  fixture.git('add', '-f', 'tracked.log')
  fixture.git('commit', '-q', '-m', 'base')
}

test('a base is the tree of its commit when nothing was changed', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  const facts = await compare(fixture, () => undefined)
  expect(facts).toMatchObject({ bytes: 0, files: [], ignored: [], submodules: [], unreadable: [] })
  const base = await fixture.recordBase()
  expect(base).toMatchObject({ isCommit: true, treeHash: fixture.git('rev-parse', 'HEAD^{tree}').trim() })
  expect(base.commit).toBe(fixture.git('rev-parse', 'HEAD').trim())
})

test('a diff reproduces every kind of change', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  const facts = await compare(fixture, () => {
    fixture.write('edited', 'new\n')
    fixture.write('new', 'new\n')
    fixture.write('new-empty', '')
    fixture.write('no-newline', 'x')
    fixture.write('deep/er/new', 'x\n')
    fixture.write('caf\xc3\xa9', 'utf-8\n')
    fixture.write('bytes-\xff\xfe', 'not utf-8\n')
    fixture.write('line\nfeed', 'x\n')
    fixture.write('tab\there "quoted" \\', 'x\n')
    fixture.write(' leading and trailing ', 'x\n')
    fixture.write('-dash', 'x\n')
    fixture.write(':(glob)*', 'x\n')
    fixture.write('crlf', 'a\r\nb\r\n')
    fixture.write('mixed', 'a\r\nb\nc\r')
    fixture.write('nul', 'a\0b')
    fixture.write(
      'binary',
      Uint8Array.from({ length: 300 }, (_, at) => (at * 7) % 256),
    )
    fixture.write(
      'new-binary',
      Uint8Array.from({ length: 5000 }, (_, at) => (at * 31) % 251),
    )
    fixture.write('large', 'line\n'.repeat(200_000))
    rmSync(fixture.at('deleted'))
    renameSync(fixture.at('moved'), fixture.at('moved-away'))
    rmSync(fixture.at('to-folder'))
    fixture.write('to-folder/inside', 'x\n')
    rmSync(fixture.at('folder'), { recursive: true })
    fixture.write('folder', 'now a file\n')
    rmSync(fixture.at('to-link'))
    symlinkSync('../../etc/passwd', fixture.at('to-link'))
    rmSync(fixture.at('link'))
    fixture.write('link', 'now a file\n')
    symlinkSync('nowhere', fixture.at('dangling'))
    symlinkSync('.', fixture.at('loop'))
    chmodSync(fixture.at('to-exec'), 0o755)
    chmodSync(fixture.at('tool'), 0o644)
    fixture.write('secretive', 'x\n', 0o600)
    fixture.write('tracked.log', 'changed\n')
    fixture.write('git~1', 'x\n')
    fixture.write('.gitmodules', '[submodule "x"]\n\tpath = x\n\turl = https://example.test/x\n')
    fixture.write('.gitattributes', '* text eol=crlf\n')
    mkdirSync(fixture.at('empty-folder'))
    fixture.write('out/built', 'ignored\n')
    fixture.write('x.log', 'ignored\n')
  }, ['out/built', 'x.log'])
  expect(facts.files.find(({ path }) => path === 'moved-away')).toMatchObject({
    action: 'rename',
    from: 'moved',
  })
  expect(facts.files.find(({ path }) => path === 'deleted')).toMatchObject({ action: 'delete' })
  expect(facts.files.find(({ path }) => path === 'new')).toMatchObject({
    action: 'create',
    added: 1,
    removed: 0,
  })
  expect(facts.files.find(({ path }) => path === 'new-binary')).toMatchObject({ added: null })
  expect(facts.files.map(({ path }) => path)).toContain('bytes-\udcff\udcfe')
  expect(facts.ignored).toEqual([])
})

test('a pack has what a commit of the changes needs, and exists only on a commit', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  const other = `${fixture.root}-clone`
  fixture.git('clone', '-q', '--bare', '.', other)
  const { treeHash, packBytes } = await compare(fixture, () => {
    fixture.write('edited', 'other\n')
    fixture.write(
      'deep/er/new',
      Uint8Array.from({ length: 5_000 }, (_, at) => (at * 7) % 256),
    )
    rmSync(fixture.at('deleted'))
  })
  expect(packBytes).toBe(statSync(fixture.packFile).size)
  const unpacked = Bun.spawnSync(['git', '-C', other, 'unpack-objects', '-q'], {
    stdin: Bun.file(fixture.packFile),
  })
  expect(unpacked.exitCode).toBe(0)
  const listed = fixture.git('-C', other, 'ls-tree', '-r', '--name-only', treeHash)
  expect(listed).toContain('deep/er/new')
  expect(listed).not.toContain('deleted')
  fixture.write('uncommitted', 'x\n')
  const facts = await compare(fixture, () => fixture.write('edited', 'again\n'))
  expect(facts.packBytes).toBeNull()
  rmSync(other, { recursive: true })
})

test('a diff includes what the agent committed, reset, stashed or staged', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  await compare(fixture, () => {
    fixture.write('committed', 'x\n')
    fixture.git('add', '-A')
    fixture.git('commit', '-q', '-m', 'by the agent')
    fixture.write('staged', 'x\n')
    fixture.git('add', '-A')
    fixture.git('checkout', '-q', '-b', 'other')
    fixture.git('rm', '-q', '--cached', 'same')
  })
})

test('a diff contains the files of repositories within the workspace', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  const facts = await compare(fixture, () => {
    fixture.write('nested/file', 'x\n')
    fixture.git('init', '-q', 'nested')
    fixture.git('-C', 'nested', 'add', '-A')
    fixture.git('-C', 'nested', 'commit', '-q', '-m', 'nested')
    fixture.write('empty-repository/file', 'x\n')
    fixture.git('init', '-q', 'empty-repository')
    fixture.git('worktree', 'add', '-q', 'tree-of-work')
  }, ['tree-of-work/tracked.log'])
  expect(facts.files.map(({ path }) => path)).toContain('nested/file')
})

test('nothing that an agent planted runs or changes the diff', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  const trap = fixture.at('../trap').toString()
  await compare(fixture, () => {
    const run = `sh -c 'touch ${trap}; cat'`
    for (const [name, value] of [
      ['filter.evil.clean', run],
      ['filter.evil.smudge', run],
      ['filter.evil.process', run],
      ['filter.evil.required', 'true'],
      ['diff.external', run],
      ['diff.evil.textconv', run],
      ['diff.evil.command', run],
      ['core.fsmonitor', run],
      ['core.hooksPath', fixture.at('hooks').toString()],
      ['core.pager', run],
      ['core.worktree', '/'],
      ['core.excludesFile', fixture.at('all').toString()],
      ['core.attributesFile', fixture.at('attributes').toString()],
      ['core.autocrlf', 'true'],
      ['core.ignoreCase', 'true'],
      ['core.fileMode', 'false'],
      ['core.symlinks', 'false'],
      ['include.path', fixture.at('included').toString()],
    ] as const)
      fixture.git('config', name, value)
    for (const hook of ['pre-commit', 'post-index-change', 'post-checkout', 'reference-transaction'])
      fixture.write(`hooks/${hook}`, `#!/bin/sh\ntouch ${trap}\n`, 0o755)
    fixture.write('all', '*\n')
    fixture.write('attributes', '* filter=evil\n')
    fixture.write(
      '.gitattributes',
      '* filter=evil diff=evil text eol=crlf ident working-tree-encoding=UTF-16\n',
    )
    fixture.write('.git/info/attributes', '* filter=evil diff=evil -diff\n')
    fixture.write('.git/info/exclude', '*\n')
    fixture.write('included', `[core]\n\tfsmonitor = ${run}\n`)
    writeFileSync(
      `${fixture.home}/.gitconfig`,
      `[core]\n\tfsmonitor = ${run}\n\texcludesFile = ${fixture.at('all').toString()}\n`,
    )
    fixture.write('id', '$Id$\n')
    fixture.write('edited', 'a\r\nb\n')
    chmodSync(fixture.at('same'), 0o755)
  })
  expect(existsSync(trap)).toBeFalse()
})

test('a diff finds an edit of the same size in the second in which the base was recorded', async () => {
  const secondOf = (fixture: TreeFixture): number => Math.floor(statSync(fixture.at('file')).ctimeMs / 1000)
  // Recording may take longer than the rest of the second; then the times differ, and the attempt shows nothing.
  for (let attempt = 0, isSame = false; attempt < 5 && !isSame; attempt += 1) {
    using fixture = new TreeFixture()
    await Bun.sleep(1000 - (Date.now() % 1000))
    fixture.write('file', 'before\n')
    const second = secondOf(fixture)
    const facts = await compare(fixture, () => fixture.write('file', 'after.\n'))
    expect(facts.files).toHaveLength(1)
    isSame = second === secondOf(fixture)
  }
})

test('a diff finds an edit of the same size whose times were set back', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  const facts = await compare(fixture, () => {
    for (const name of ['same', 'edited', 'folder/a']) {
      fixture.write(name, fixture.walk().has(name) ? name.replace(/./g, 'x').padEnd(1) : '')
      utimesSync(fixture.at(name), 1_700_000_000, 1_700_000_000)
    }
  })
  expect(facts.files).toHaveLength(3)
})

test('a diff reproduces a folder in the place of a symlink that was renamed, which git cannot apply as a rename', async () => {
  using fixture = new TreeFixture()
  symlinkSync('target', fixture.at('link'))
  await compare(fixture, () => {
    renameSync(fixture.at('link'), fixture.at('moved'))
    fixture.write('link/file', 'x\n')
  })
})

test('a diff works without a repository', async () => {
  using fixture = new TreeFixture()
  fixture.write('a', 'a\n')
  fixture.write('folder/b', 'b\n')
  const facts = await compare(fixture, () => {
    fixture.write('a', 'changed\n')
    rmSync(fixture.at('folder/b'))
  })
  expect(facts.files.map(({ path, action }) => `${action} ${path}`)).toEqual(['modify a', 'delete folder/b'])
  const base = await fixture.recordBase()
  expect(base).toMatchObject({ commit: null, isCommit: false })
})

test('a diff names files that ignore rules of the run hide', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  const base = await fixture.recordBase()
  fixture.write('.gitignore', 'out/\n*.log\nhidden\n')
  fixture.write('hidden', 'x\n')
  fixture.write('sub/.gitignore', '*\n')
  fixture.write('sub/also', 'x\n')
  fixture.write('out/usual', 'x\n')
  const facts = await fixture.makeDiff(base)
  expect([...facts.ignored].sort()).toEqual(['hidden', 'sub/.gitignore', 'sub/also'])
  expect(fixture.applied(base).treeHash).toBe(facts.treeHash)
})

test('a diff names submodules and special files, which it cannot express', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  fixture.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', fixture.root, 'sub')
  fixture.git('commit', '-q', '-m', 'submodule')
  const base = await fixture.recordBase()
  expect(base.isCommit).toBeTrue()
  fixture.write('sub/same', 'changed\n')
  Bun.spawnSync(['mkfifo', fixture.at('pipe').toString()])
  fixture.write('.GIT/config', 'x')
  symlinkSync('x', fixture.at('folder/.gitmodules'))
  const facts = await fixture.makeDiff(base)
  expect(facts.submodules).toEqual(['sub'])
  expect([...facts.unreadable].sort()).toEqual(['.GIT/config', 'folder/.gitmodules', 'pipe'])
  expect(facts.files).toEqual([])
  expect(fixture.applied(base).treeHash).toBe(base.treeHash)
})

test('a diff withholds files that contain a secret, and refuses names that do', async () => {
  using fixture = new TreeFixture()
  createRepository(fixture)
  const base = await fixture.recordBase()
  fixture.write('env.txt', 'TOKEN=grant-0123456789\n')
  fixture.write('env.bin', Buffer.from('\0\0grant-0123456789\0'))
  fixture.write('edited', 'grant-0123456789\n')
  fixture.write('fine', 'x\n')
  const facts = await fixture.makeDiff(base, ['grant-0123456789'])
  expect([...facts.withheld].sort()).toEqual(['edited', 'env.bin', 'env.txt'])
  expect(facts.files.map(({ path }) => path)).toEqual(['fine'])
  expect(fixture.applied(base).treeHash).toBe(facts.treeHash)
  symlinkSync('grant-0123456789', fixture.at('name'))
  expect(fixture.makeDiff(base, ['grant-0123456789'])).rejects.toThrow('contains a secret')
})

test.each([1, 2])('a diff reproduces 50 random trees of seed %d', async (seed) => {
  await compareRandomTrees(new Random(seed), 50)
})
