import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { createFixture } from '../workspace/git/git-workspace.fixture.ts'
import { StatusParser } from '../workspace/git/status.ts'
import { toCompatFiles } from './git-routes.ts'

const get = 'compat/git'
const [OID, NONE] = ['a'.repeat(40), '0'.repeat(40)]
const OIDS = `${OID} ${NONE}`
const MODES = '100644 100644 100644'

test('status lists changed files, and none without a repository', async () => {
  using fixture = createFixture()
  expect(await fixture.get(`${get}/status`)).toEqual({
    status: 200,
    body: { is_repo: true, available: true, files: {} },
  })
  for (const name of ['modified', 'deleted', 'cached', 'old']) fixture.write(name, `${name}, long enough\n`)
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--message', 'first')
  fixture.write('modified', 'x')
  rmSync(join(fixture.root, 'deleted'))
  fixture.git('rm', '--quiet', '--cached', 'cached')
  fixture.git('mv', 'old', 'renamed')
  fixture.write('added', 'x')
  fixture.git('add', 'added')
  fixture.write('added', 'y')
  fixture.write('ünträcked', '')
  expect(await fixture.get(`${get}/status`)).toEqual({
    status: 200,
    body: {
      is_repo: true,
      available: true,
      files: { modified: 'M', deleted: 'D', cached: 'D', renamed: 'M', added: 'A', ünträcked: 'U' },
    },
  })
  rmSync(join(fixture.root, '.git'), { recursive: true })
  expect(await fixture.get(`${get}/status`)).toEqual({ status: 200, body: { is_repo: false, files: [] } })
})

test('diff compares with the last commit and reports an error in the response', async () => {
  using fixture = createFixture()
  fixture.write('file', 'one\n')
  expect(await fixture.get(`${get}/diff?path=file`)).toEqual({
    status: 200,
    body: { diff: '', path: 'file', error: expect.stringMatching(/^Git error: /) },
  })
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--message', 'first')
  fixture.write('file', 'two\n')
  fixture.git('add', '.')
  fixture.write('untracked', '')
  expect(await fixture.get(`${get}/diff?path=file`)).toEqual({
    status: 200,
    body: { diff: fixture.git('diff', 'HEAD', '--', 'file'), path: 'file' },
  })
  expect((await fixture.get(`${get}/diff?path=untracked`)).body).toEqual({ diff: '', path: 'untracked' })
  rmSync(join(fixture.root, '.git'), { recursive: true })
  expect(await fixture.get(`${get}/diff?path=file`)).toMatchObject({
    status: 200,
    body: { diff: '', path: 'file', error: expect.stringMatching(/^Git error: /) },
  })
})

test('show returns a text of the last commit, or null and the reason', async () => {
  using fixture = createFixture()
  const shown = async (path: string): Promise<unknown> => (await fixture.get(`${get}/show?path=${path}`)).body
  expect(await shown('file')).toEqual({ content: null, path: 'file', error: 'Not in HEAD' })
  fixture.write('file', 'one\n')
  fixture.write('folder/binary', Uint8Array.of(0xff, 0))
  fixture.write('large', 'x'.repeat(5 * 1024 * 1024))
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--message', 'first')
  fixture.write('file', 'two\n')
  expect(await shown('file')).toEqual({ content: 'one\n', path: 'file' })
  expect(await shown('./folder/../file')).toEqual({ content: 'one\n', path: './folder/../file' })
  expect(await shown(join(fixture.root, 'file'))).toEqual({
    content: 'one\n',
    path: join(fixture.root, 'file'),
  })
  expect(await shown('missing')).toEqual({ content: null, path: 'missing', error: 'Not in HEAD' })
  expect(await shown('folder')).toEqual({ content: null, path: 'folder', error: 'Not in HEAD' })
  expect(await shown('folder/binary')).toEqual({ content: null, path: 'folder/binary', error: 'Binary file' })
  expect(await shown('large')).toEqual({ content: null, path: 'large', error: 'File too large' })
})

test.each(['diff', 'show'])(
  '%s refuses a path that leads out, and a missing one, with 400 and 422',
  async (route) => {
    using fixture = createFixture()
    for (const path of ['../x', 'a/../../x', '/etc/passwd', `${fixture.root}-evil/x`])
      expect(await fixture.get(`${get}/${route}?path=${path}`)).toEqual({
        status: 400,
        body: { detail: `Path traversal detected: ${path}` },
      })
    expect(await fixture.get(`${get}/${route}`)).toEqual({
      status: 422,
      body: { detail: [{ type: 'missing', loc: ['query', 'path'], msg: 'Field required', input: null }] },
    })
  },
)

test('each path has one status letter', () => {
  const changed = (staged: string, unstaged: string): string =>
    `1 ${staged}${unstaged} N... ${MODES} ${OIDS} ${staged}${unstaged}`
  const tokens = [
    changed('M', '.'),
    changed('.', 'M'),
    changed('A', 'M'),
    changed('.', 'D'),
    changed('D', '.'),
    changed('T', '.'),
    changed('M', 'D'),
    changed('.', 'A'),
    `2 R. N... ${MODES} ${OIDS} R90 renamed`,
    'old',
    `2 C. N... ${MODES} ${OIDS} C90 copied`,
    'old',
    `u AA N... ${MODES} 100644 ${OIDS} ${OID} both`,
    '? new/',
    '? D.',
  ]
  const parser = new StatusParser()
  const entries = tokens.flatMap((token) => parser.push(Buffer.from(token)) ?? [])
  expect(Object.fromEntries(toCompatFiles(entries))).toEqual({
    'M.': 'M',
    '.M': 'M',
    AM: 'A',
    '.D': 'D',
    'D.': 'D',
    'T.': 'M',
    MD: 'M',
    '.A': 'A',
    renamed: 'M',
    copied: 'A',
    both: 'C',
    'new/': 'U',
  })
})

test('the more severe of two statuses of a path counts, in either order', () => {
  const conflict = { kind: 'conflict', path: 'x', sides: 'UU' } as const
  const untracked = { kind: 'untracked', path: 'x' } as const
  expect([...toCompatFiles([conflict, untracked])]).toEqual([['x', 'C']])
  expect([...toCompatFiles([untracked, conflict])]).toEqual([['x', 'C']])
})
