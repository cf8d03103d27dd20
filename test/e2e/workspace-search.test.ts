import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  chownSync,
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually, readDescendants, readProcessCounts, rejectionOf } from '@sandwire/testing'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** The user `nobody` of Debian. Only root can switch to it. */
const UID = 65_534
const isRoot = process.getuid?.() === 0

let sandboxd: RunningSandboxd
let workspace: string

function plant(path: string | Buffer, content: string): void {
  const place = Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from(path)])
  writeFileSync(place, content)
}

beforeAll(async () => {
  workspace = mkdtempSync(join(tmpdir(), 'sandwire-search-'))
  mkdirSync(join(workspace, 'src/deep'), { recursive: true })
  plant('src/Main.ts', 'one\nneedle here\nthree\n')
  plant('src/deep/main.test.ts', 'nothing\n')
  plant(Buffer.concat([Buffer.from('src/'), Buffer.of(0xff)]), 'needle\n')
  plant('main', 'needle\n')
  symlinkSync('/etc', join(workspace, 'etc'))
  // Only the user may enter it.
  chmodSync(workspace, 0o700)
  if (isRoot)
    for (const path of ['', 'src', 'src/deep', 'src/Main.ts']) chownSync(join(workspace, path), UID, UID)
  sandboxd = await startSandboxd({
    workspace,
    args: isRoot ? ['--run-as', `${UID}:${UID}`] : [],
    env: { RIPGREP_CONFIG_PATH: '/nonexistent' },
  })
})
afterAll(async () => {
  await sandboxd.stop()
  rmSync(workspace, { recursive: true, force: true })
})

async function lines(path: string): Promise<unknown[]> {
  const response = await sandboxd.fetch(path)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
  return (await response.text())
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
}

test('contents are searched as the user, in a folder of the workspace', async () => {
  const found = await lines('/workspace/search?q=needle&path=src&context=1&glob=*.ts')
  expect(found).toEqual([
    {
      type: 'match',
      path: 'src/Main.ts',
      line: 2,
      text: 'needle here',
      ranges: [[0, 6]],
      before: ['one'],
      after: ['three'],
    },
    { type: 'end', matches: 1, files: 1, truncated: false },
  ])
  expect((await lines('/workspace/search?q=needle')).at(-1)).toMatchObject({ matches: 3, files: 3 })
})

test.each([
  ['/workspace/search?q=(&regex=1', 400, 'bad_request', 'Cannot use parameter "q": unclosed group'],
  ['/workspace/search?q=x&path=none', 404, 'file_not_found', 'Cannot open "none": no such file'],
  ['/workspace/search?q=x&path=main', 400, 'not_a_folder', 'Cannot open "main": not a folder'],
  ['/workspace/search?q=x&path=etc', 400, 'path_refused', 'Cannot open "etc": it is outside the workspace'],
  [
    '/workspace/search?q=x&path=..',
    400,
    'path_refused',
    'Cannot use the path "..": it is outside the workspace',
  ],
  ['/workspace/search?q=x&follow=1', 400, 'bad_request', 'Cannot use parameter "follow": unknown'],
  ['/workspace/find?q=', 400, 'bad_request', 'Cannot use parameter "q": empty'],
  ['/workspace/find?q=x&path=etc', 400, 'path_refused', 'Cannot list "etc": it is outside the workspace'],
])(
  'a search that cannot be made is refused (threats T12, T13, T20): %s',
  async (path, status, code, message) => {
    const response = await sandboxd.fetch(path)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error: { code, message } })
  },
)

/** Number of sandboxd's descriptors; only root can read them. */
function countFiles(): number {
  return isRoot ? readProcessCounts(sandboxd.pid).fds : 0
}

test('ends ripgrep when the client disconnects', async () => {
  plant('endless-0', `${'x'.repeat(99)}\n`.repeat(300_000))
  for (let count = 1; count < 2_000; count += 1)
    linkSync(join(workspace, 'endless-0'), join(workspace, `endless-${count}`))
  const isRunning = (): boolean => readDescendants(sandboxd.pid).some(({ name }) => name === 'rg')
  const before = countFiles()
  const leaver = new AbortController()
  const answer = sandboxd.fetch('/workspace/search?q=no-such-text', { signal: leaver.signal })
  await eventually(isRunning, { what: 'rg to run' })
  leaver.abort()
  expect(await rejectionOf(answer)).toMatchObject({ name: 'AbortError' })
  await eventually(() => !isRunning(), { what: 'rg to end' })
  await eventually(() => countFiles() <= before, { what: 'descriptors to be closed' })
  for (let count = 0; count < 2_000; count += 1) rmSync(join(workspace, `endless-${count}`))
})

test('a folder that the user may not enter is refused', async () => {
  const shut = join(workspace, 'shut')
  mkdirSync(shut)
  if (isRoot) chownSync(shut, UID, UID)
  chmodSync(shut, 0o400)
  const response = await sandboxd.fetch('/workspace/search?q=x&path=shut')
  rmSync(shut, { recursive: true })
  expect(response.status).toBe(403)
  expect(await response.json()).toMatchObject({
    error: { code: 'file_refused', message: 'Cannot search "shut": permission denied' },
  })
})

test('finds names with any bytes', async () => {
  const find = async (query: string): Promise<unknown> =>
    (await sandboxd.fetch(`/workspace/find?${query}`)).json()
  expect(await find('q=MAIN')).toEqual({
    results: [
      { path: 'main', kind: 'file' },
      { path: 'src/Main.ts', kind: 'file' },
      { path: 'src/deep/main.test.ts', kind: 'file' },
    ],
    truncated: false,
  })
  expect(await find('q=%FF&path=src')).toEqual({
    results: [{ path: 'src/\udcff', kind: 'file' }],
    truncated: false,
  })
  expect(await find('q=*&limit=1')).toEqual({ results: [{ path: 'etc', kind: 'link' }], truncated: true })
})

test('the compat search finds names by pattern', async () => {
  const ask = async (query: string): Promise<unknown> => {
    const response = await sandboxd.fetch(`/workspace/compat/search?${query}`)
    return [response.status, await response.json()]
  }
  expect(await ask('q=MAIN*&ignored=1')).toEqual([
    200,
    {
      results: [
        { name: 'main.test.ts', path: 'src/deep/main.test.ts', dir: 'src/deep' },
        { name: 'Main.ts', path: 'src/Main.ts', dir: 'src' },
        { name: 'main', path: 'main', dir: '' },
      ],
      pattern: 'MAIN*',
      path: '.',
    },
  ])
  expect(await ask('q=x&q=deep&path=src')).toEqual([
    200,
    { results: [{ name: 'deep', path: 'src/deep', dir: 'src' }], pattern: 'deep', path: 'src' },
  ])
  expect(await ask('q=x&path=none')).toEqual([200, { results: [], pattern: 'x', path: 'none' }])
  expect(await ask('q=x&path=../x')).toEqual([400, { detail: 'Path traversal detected: ../x' }])
  expect(await ask('q=x&path=main')).toEqual([400, { detail: 'Path is not a directory: main' }])
  const loc = ['query', 'q']
  expect(await ask('')).toEqual([
    422,
    { detail: [{ type: 'missing', loc, msg: 'Field required', input: null }] },
  ])
  expect(await ask('q=')).toEqual([
    422,
    {
      detail: [
        {
          type: 'string_too_short',
          loc,
          msg: 'String should have at least 1 character',
          input: '',
          ctx: { min_length: 1 },
        },
      ],
    },
  ])
})

test('the compat search goes ten levels deep', async () => {
  const deep = Array.from({ length: 12 }, (_, at) => `d${at}`)
  mkdirSync(join(workspace, ...deep), { recursive: true })
  const response = await sandboxd.fetch('/workspace/compat/search?q=d*')
  const { results } = (await response.json()) as { results: { name: string }[] }
  expect(results.map(({ name }) => name).filter((name) => name !== 'deep')).toEqual(deep.slice(0, 11))
})
