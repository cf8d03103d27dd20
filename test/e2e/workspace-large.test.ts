import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { encodePath, pathFromBytes } from '@sandwire/protocol'
import { TarReader } from '@sandwire/tar'
import { readShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { describeManyFiles, packManyFiles } from './support/many-files.ts'

const W = '/api/workspaces/large'
const MANY = describeManyFiles(8)
const REFS = 5_000
const GIT =
  'GIT_CONFIG_GLOBAL=/dev/null git -c user.name=n -c user.email=e@x -c core.compression=0 -c gc.auto=0'

/** Generous, for a loaded machine. */
const TIMEOUT_MS = 180_000

type Fields = Record<string, unknown>

let deployment: Deployment
beforeAll(async () => {
  deployment = await Deployment.open()
  // Also for the inodes of git's objects.
  await deployment.create('large', { limits: { diskBytes: 1024 ** 3 } })
  const put = await ask(`${W}/archive?path=.`, { method: 'PUT', body: packManyFiles(MANY) })
  expect([put.status, await put.json()]).toMatchObject([200, { entries: MANY.files, refused: [] }])
  const script = [
    `export HOME=/nonexistent; git init -q -b main; ${GIT} add -A; ${GIT} commit -q -m first`,
    `oid=$(git rev-parse HEAD); for n in $(seq ${REFS}); do echo "$oid refs/heads/topic/$n"; done > .git/packed-refs`,
    'git status --porcelain | wc -l; git for-each-ref | wc -l',
  ]
  expect(await readShell(deployment.sandbox('large'), script.join('\n'))).toBe(`0\n${REFS + 1}\n`)
})
afterAll(() => deployment[Symbol.asyncDispose]())

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return deployment.fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS), ...init })
}

async function get(path: string): Promise<Fields> {
  const response = await ask(path)
  const body: Fields = Object(await response.json())
  expect([response.status, body]).toEqual([200, body])
  return body
}

async function post(path: string, body: object): Promise<Fields> {
  const headers = { 'content-type': 'application/json' }
  const response = await ask(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const answer: Fields = Object(await response.json())
  expect([path, response.status, answer]).toEqual([path, 200, answer])
  return answer
}

const list = (body: Fields, name: string): Fields[] => {
  const value = body[name]
  return Array.isArray(value) ? value.map((each: unknown): Fields => Object(each)) : []
}

/** One field of each entry, sorted, without `.git`. */
const sorted = (each: readonly Fields[], field: string): string[] =>
  each
    .map((fields) => String(fields[field]))
    .filter((text) => text !== '.git')
    .toSorted()

async function linesOf(path: string): Promise<Fields[]> {
  const text = await (await ask(path)).text()
  return text
    .trimEnd()
    .split('\n')
    .map((line): Fields => Object(JSON.parse(line)))
}

/** Paths of the files in an archive. */
async function entriesOf(path: string): Promise<string[]> {
  const reader = new TarReader()
  const body: ReadableStream<Uint8Array> | null = (await ask(path)).body
  const found: string[] = []
  for await (const chunk of body ?? [])
    for (const event of reader.push(chunk)) if (event.kind === 'entry') found.push(event.entry.path)
  return found
}

describe(`a tree of ${MANY.files} files`, () => {
  test('is listed in pages, each name once, and whole by the compat API', async () => {
    const names: unknown[] = []
    for (let after = ''; ;) {
      const page = await get(`${W}/tree?path=flat&limit=5000${after === '' ? '' : `&after=${after}`}`)
      names.push(...list(page, 'entries').map(({ name }) => name))
      if (page['truncated'] !== true) break
      after = String(names.at(-1))
    }
    expect([names.length, new Set(names).size]).toEqual([MANY.flat, MANY.flat])
    const compat = list(await get('/api/tree?path=flat&sandbox=large'), 'entries')
    expect(compat).toHaveLength(MANY.flat)
    expect(compat.at(-1)).toEqual({
      name: 'n11999.txt',
      path: 'flat/n11999.txt',
      is_dir: false,
      size: 28,
    })
  })

  test('is searched by content and by name, and reports truncation', async () => {
    const found = await linesOf(`${W}/search?q=needle`)
    expect(found).toMatchObject([
      { type: 'match', path: MANY.needle.path, line: 1, text: MANY.needle.text },
      { type: 'end', matches: 1, files: 1, truncated: false },
    ])
    const many = await linesOf(`${W}/search?q=second&limit=500`)
    expect(many.at(-1)).toMatchObject({ type: 'end', matches: 500, truncated: 'matches' })
    expect(await get(`${W}/find?q=f0500`)).toMatchObject({ truncated: false })
    const names = await get(`${W}/find?q=.txt&limit=100`)
    expect([list(names, 'results').length, names['truncated']]).toEqual([100, true])
    const compat = await get('/api/search?q=f0500.txt&sandbox=large')
    expect(list(compat, 'results')).toHaveLength(MANY.folders)
  })

  test('is a repository like any other', async () => {
    expect(await get(`${W}/git/status`)).toMatchObject({
      head: { branch: 'main' },
      files: [],
      truncated: false,
    })
    await ask(`${W}/file?path=d04/f0500.txt`, { method: 'PUT', body: 'changed\n' })
    await ask(`${W}/file?path=d05&recursive=1`, { method: 'DELETE' })
    const files = list(await get(`${W}/git/status`), 'files')
    expect(files).toHaveLength(1_001)
    const compat = await get('/api/git/status?sandbox=large')
    expect(Object.entries(Object(compat['files'])).slice(0, 2)).toEqual([
      ['d04/f0500.txt', 'M'],
      ['d05/f0000.txt', 'D'],
    ])
    const diff = await get(`/api/git/diff?path=d04/f0500.txt&sandbox=large`)
    expect(diff['diff']).toContain(`-${MANY.needle.text}\n-second line\n+changed\n`)
    await post(`${W}/git/discard`, { paths: ['d05'] })
    await post(`${W}/git/stage`, { paths: ['d04/f0500.txt'] })
    await post(`${W}/git/commit`, { message: 'second', author: { name: 'n', email: 'e@x' } })
    const commits = list(await get(`${W}/git/log?path=d04/f0500.txt`), 'commits')
    expect(commits.map(({ message }) => String(message).trim())).toEqual(['second', 'first'])
    expect(await get('/api/git/show?path=d04/f0500.txt&sandbox=large')).toMatchObject({
      content: 'changed\n',
    })
  })

  test(`with ${REFS} branches lists the first ones and reports truncation`, async () => {
    const branches = await get(`${W}/git/branches`)
    expect(branches).toMatchObject({ head: { branch: 'main' }, truncated: true })
    expect(list(branches, 'branches').length).toBeGreaterThanOrEqual(1_000)
    expect(list(await get(`${W}/git/log?ref=topic/4999`), 'commits')).toHaveLength(1)
  })

  test('is packed as an archive and continues after an entry', async () => {
    const all = await entriesOf(`${W}/archive?path=flat`)
    expect(all.filter((path) => path.endsWith('.txt'))).toHaveLength(MANY.flat)
    const last = all.at(-3) ?? ''
    expect(await entriesOf(`${W}/archive?path=flat&after=${last}`)).toEqual(all.slice(-2))
  })

  test('is copied, moved and removed', async () => {
    await post(`${W}/copy`, { from: 'flat', to: 'copied' })
    await post('/api/file/move?sandbox=large', { src_path: 'copied', dest_dir: 'd00' })
    expect(list(await get(`${W}/tree?path=d00/copied&limit=10000`), 'entries')).toHaveLength(10_000)
    const removed = await ask(`/api/file?path=d00/copied&sandbox=large`, { method: 'DELETE' })
    expect(removed.status).toBe(200)
    expect(await get('/api/tree?path=d00/copied&sandbox=large')).toEqual({ entries: [], path: 'd00/copied' })
  })
})

describe('names', () => {
  const NAMES = [
    'with space',
    'new\nline',
    'parrot 🦜',
    '-rf',
    '--output=x',
    ' lead',
    'trail ',
    'q"uote\\',
    "it's",
    '*?[a]',
    '\u001b]0;x\u0007',
    'a\u202eb',
    ':(top)',
    '@{-1}',
    'e\u0301',
    '\u00e9',
    '#hash',
    'per%41cent',
    'a+b&c=d',
    pathFromBytes(Uint8Array.of(0x78, 0xff, 0xfe, 0x79)),
    pathFromBytes(Uint8Array.of(0xc3, 0x28)),
    'x'.repeat(255),
  ]
  beforeAll(async () => {
    await readShell(deployment.sandbox('large'), 'git init -q names')
  })

  test('of every kind are written, listed, found, searched, packed, committed, moved and removed', async () => {
    const at = (name: string): string => encodePath(`names/${name}`) ?? ''
    for (const name of NAMES) {
      const put = await ask(`${W}/file?path=${at(name)}`, { method: 'PUT', body: 'odd one\n' })
      expect([name, put.status]).toEqual([name, 200])
    }
    const names = NAMES.toSorted()
    expect(sorted(list(await get(`${W}/tree?path=names`), 'entries'), 'name')).toEqual(names)
    const compat = await get('/api/tree?path=names&sandbox=large')
    expect(sorted(list(compat, 'entries'), 'name')).toEqual(names)
    const paths = NAMES.map((name) => `names/${name}`).toSorted()
    const lines = await linesOf(`${W}/search?q=odd+one&path=names&hidden=1`)
    const found = lines.filter(({ type }) => type === 'match')
    expect(sorted(found, 'path')).toEqual(paths)
    const named = list(await get('/api/search?q=*&path=names&sandbox=large'), 'results')
    expect(named.map(({ path }) => path)).toEqual(expect.arrayContaining(paths))
    const packed = await entriesOf(`${W}/archive?path=names`)
    expect(packed).toEqual(expect.arrayContaining(NAMES))
    await post(`${W}/git/stage`, { repo: 'names', paths: NAMES })
    await post(`${W}/git/commit`, { repo: 'names', message: 'odd', author: { name: 'n', email: 'e@x' } })
    expect(await get(`${W}/git/status?repo=names`)).toMatchObject({ files: [] })
    for (const name of NAMES) {
      expect(await (await ask(`${W}/file?path=${at(name)}`)).text()).toBe('odd one\n')
      expect(await get(`${W}/stat?path=${at(name)}`)).toMatchObject({ kind: 'file', size: 8 })
      expect(await get(`/api/file?path=${at(name)}&sandbox=large`)).toMatchObject({ content: 'odd one\n' })
      const inRepository = `repo=names&path=${encodePath(name) ?? ''}`
      expect(await get(`${W}/git/show?${inRepository}`)).toMatchObject({ path: name, content: 'odd one\n' })
      expect(list(await get(`${W}/git/log?${inRepository}`), 'commits')).toHaveLength(1)
    }
    for (const name of NAMES) {
      await post(`${W}/copy`, { from: `names/${name}`, to: 'copied' })
      await post(`${W}/rename`, { from: 'copied', to: `names/${name}`, replace: true })
      const removed = await ask(`${W}/file?path=${at(name)}`, { method: 'DELETE' })
      expect([name, removed.status]).toEqual([name, 200])
    }
    const left = await get(`${W}/git/status?repo=names`)
    expect(sorted(list(left, 'files'), 'path')).toEqual(names)
  })
})
