import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'bun:test'
import { createFixture } from './git-workspace.fixture.ts'
import { formatConfig, GitScratch, type GitSetting, parseSettings } from './private-config.ts'

const folder = mkdtempSync(join(tmpdir(), 'private-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

const local = (key: string, value?: string): GitSetting => ({ scope: 'local', key, value })

/** Settings that git reads from a file. */
function readBack(content: Uint8Array): readonly GitSetting[] {
  const file = join(folder, 'config')
  writeFileSync(file, content)
  const ran = Bun.spawnSync(['git', 'config', '--file', file, '--list', '--null'])
  if (!ran.success) throw new Error(ran.stderr.toString())
  const tokens = ran.stdout.toString('latin1').split('\0').slice(0, -1)
  return parseSettings(Buffer.from(tokens.map((token) => `local\0${token}\0`).join(''), 'latin1'))
}

test('git reads the same settings from the copy', () => {
  const settings = [
    local('core.bare', 'false'),
    local('a.flag'),
    local('a.empty', ''),
    local('a.text', ' # ; "quoted" \\ back\tslash\n[x]\ny = z \r\n '),
    local('a.text', 'a second value'),
    local('filter.x.y = "z"\\.clean', 'program'),
    local('branch.\u00e4\udcff.merge', '\udcff\u{1f99c}'),
    local('url.https://[::1]/.insteadof', 'x:'),
  ]
  expect(readBack(formatConfig(settings))).toEqual(settings)
})

test('the copy contains neither included files, nor the settings of the system and of sandboxd', () => {
  const settings: readonly GitSetting[] = [
    { scope: 'system', key: 'a.system', value: '1' },
    { scope: 'global', key: 'a.global', value: '1' },
    { scope: 'global', key: 'extensions.objectformat', value: 'sha256' },
    local('extensions.objectformat', 'sha1'),
    local('extensions.worktreeconfig', 'true'),
    local('include.path', '/x'),
    local('includeif.gitdir:/x.path', '/x'),
    { scope: 'worktree', key: 'a.worktree', value: '1' },
    { scope: 'command', key: 'a.command', value: '1' },
  ]
  expect(readBack(formatConfig(settings)).map(({ key }) => key)).toEqual([
    'a.global',
    'extensions.objectformat',
    'a.worktree',
  ])
})

test('only sandboxd can write to the copy, and everyone can read it, whatever the umask is', () => {
  const umask = process.umask(0o077)
  try {
    using scratch = new GitScratch(folder)
    const common = scratch.openCommonFolder('/nowhere', [local('a.b', '1')])
    const modeOf = (path: string): number => statSync(path).mode & 0o777
    expect([common.path, join(common.path, 'config'), scratch.globalConfig].map(modeOf)).toEqual([
      0o755, 0o644, 0o644,
    ])
    common.remove()
    expect(existsSync(common.path)).toBe(false)
  } finally {
    process.umask(umask)
  }
})

test('a request leaves no copy behind', async () => {
  using fixture = createFixture()
  expect(await fixture.get('git/status')).toMatchObject({ status: 200 })
  const scratch = join(fixture.gitScratch.globalConfig, '..')
  expect(readdirSync(scratch)).toEqual(['global'])
})

test('the first commit of a repository is in its reflog', async () => {
  using fixture = createFixture()
  fixture.write('file', 'one')
  expect(existsSync(join(fixture.root, '.git/logs'))).toBe(false)
  await fixture.post('git/stage', { paths: ['file'] })
  expect(await fixture.post('git/commit', { message: 'first' })).toMatchObject({ status: 200 })
  expect(readFileSync(join(fixture.root, '.git/logs/refs/heads/main'), 'utf8')).toContain('first')
})

test('sees refs that another git packs, and the settings of the repository', async () => {
  using fixture = createFixture()
  fixture.write('file', 'one')
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--message', 'first')
  fixture.git('branch', 'other')
  fixture.git('config', 'branch.main.remote', '.')
  fixture.git('config', 'branch.main.merge', 'refs/heads/other')
  fixture.git('pack-refs', '--all')
  expect(await fixture.get('git/status')).toMatchObject({
    body: { head: { branch: 'main', upstream: 'other' } },
  })
  expect(await fixture.get('git/log?ref=other')).toMatchObject({ body: { commits: [{ message: 'first' }] } })
})
