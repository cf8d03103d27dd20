import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import { eventually, readDescendants, readProcessCounts, rejectionOf } from '@sandwire/testing'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { INHERIT_OOM_SCORE } from '../../processes/tree/oom-score.ts'
import { ProcessScanner } from '../../processes/tree/process-scanner.ts'
import { SAME_USER } from '../../processes/run-as.ts'
import { Query } from '../routes/parameters.ts'
import { createRunTool, type RunTool } from '../tool.ts'
import { SEARCH_BUDGET, type SearchBudget, searchContent } from './content-search.ts'
import { parseSearch } from './search-request.ts'

let root = ''
let marker = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'search-'))
  marker = join(root, 'marker')
})
afterEach(() => rmSync(root, { recursive: true }))

const toolOf = (env: Readonly<Record<string, string>>): RunTool =>
  createRunTool({
    baseEnv: { PATH: '/usr/bin:/bin', HOME: root, LANG: 'C.UTF-8', ...env },
    user: SAME_USER,
    children: new Set(),
    scanner: new ProcessScanner(),
    withOomScore: INHERIT_OOM_SCORE,
    now: () => performance.now(),
  })

interface Options {
  readonly budget?: SearchBudget
  readonly signal?: AbortSignal
  readonly runTool?: RunTool
  readonly ripgrep?: string
}

function open(search: string, options: Options = {}): Promise<ReadableStream<Uint8Array>> {
  return searchContent(parseSearch(new Query(new URL(`http://localhost/x?${search}`))), {
    files: { openFolder: async (path) => openSync(join(root, path), 'r') },
    runTool: toolOf({}),
    ripgrep: rgPath,
    budget: SEARCH_BUDGET,
    signal: new AbortController().signal,
    ...options,
  })
}

interface Line {
  readonly type: string
  readonly path: string
  readonly line: number
  readonly text: string
  readonly ranges: readonly (readonly [number, number])[]
}

/** All lines of a response, parsed and sorted by path. */
async function search(query: string, options: Options = {}): Promise<Line[]> {
  const text = await new Response(await open(query, options)).text()
  expect(text).toEndWith('\n')
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line): Line => JSON.parse(line))
  const last = lines.pop()
  if (last === undefined) return []
  return [...lines.toSorted((a, b) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1)), last]
}

function plant(name: string | Buffer, content: string | Uint8Array): void {
  writeFileSync(
    typeof name === 'string' ? join(root, name) : Buffer.concat([Buffer.from(`${root}/`), name]),
    content,
  )
}

/** 120 GB to search: one file with many hard links. */
function plantEndless(): void {
  plant('endless-0', `${'x'.repeat(99)}\n`.repeat(300_000))
  for (let count = 1; count < 4_000; count += 1)
    linkSync(join(root, 'endless-0'), join(root, `endless-${count}`))
}

const isRunning = (): boolean => readDescendants(process.pid).some(({ name }) => name === 'rg')

const encode = encodeURIComponent

test('finds lines with ranges, context and paths from the workspace', async () => {
  mkdirSync(join(root, 'src/deep'), { recursive: true })
  plant('src/a.txt', 'one\nhello world, hello\nthree\n')
  plant('src/deep/b.txt', 'hello')
  plant('c.txt', 'hello')
  expect(await search('q=hello&path=src&context=1')).toEqual([
    {
      type: 'match',
      path: 'src/a.txt',
      line: 2,
      text: 'hello world, hello',
      ranges: [
        [0, 5],
        [13, 18],
      ],
      before: ['one'],
      after: ['three'],
    },
    {
      type: 'match',
      path: 'src/deep/b.txt',
      line: 1,
      text: 'hello',
      ranges: [[0, 5]],
      before: [],
      after: [],
    },
    { type: 'end', matches: 2, files: 2, truncated: false },
  ] as never)
})

test.each([
  ['q=a.c', ['a.c']],
  ['q=a.c&regex=1&case=sensitive', ['a.c', 'abc']],
  ['q=abc', ['ABC', 'abc']],
  ['q=Abc', []],
  ['q=Abc&case=insensitive', ['ABC', 'abc']],
  ['q=abc&case=sensitive', ['abc']],
])('searches with the requested options: %s', async (query, texts) => {
  plant('x', 'a.c\nabc\nABC\n')
  const found = await search(query)
  expect(
    found
      .slice(0, -1)
      .map(({ text }) => text)
      .toSorted(),
  ).toEqual(texts.toSorted())
})

test('searches only files that match the globs', async () => {
  mkdirSync(join(root, '.git'))
  for (const name of ['a.ts', 'b.js', '-c.ts', '.hidden', 'ignored.ts']) plant(name, 'needle')
  plant('.gitignore', 'ignored.ts')
  const paths = async (query: string): Promise<string[]> =>
    (await search(`q=needle&${query}`)).slice(0, -1).map(({ path }) => path)
  expect(await paths('')).toEqual(['-c.ts', 'a.ts', 'b.js'])
  expect(await paths('glob=*.js')).toEqual(['b.js'])
  expect(await paths('glob=!*.js')).toEqual(['-c.ts', 'a.ts'])
  // A glob also selects ignored files.
  expect(await paths('glob=*.ts&glob=!a*')).toEqual(['-c.ts', 'ignored.ts'])
  expect(await paths('glob=-c.ts')).toEqual(['-c.ts'])
  expect(await paths('hidden=1')).toContain('.hidden')
  expect(await paths('ignored=1')).toContain('ignored.ts')
})

test('reports names and lines with any bytes (threat T24)', async () => {
  plant('new\nline', 'needle')
  plant('\u001b]0;x\u0007', 'needle')
  plant(Buffer.from([0x66, 0xff]), Buffer.from([0xe9, 0x20, ...Buffer.from('needle')]))
  const raw = await new Response(await open('q=needle')).text()
  expect(raw.trimEnd().split('\n')).toHaveLength(4)
  expect(raw).not.toContain('\u001b')
  const found = await search('q=needle')
  expect(found.slice(0, -1).map(({ path, text, ranges }) => [path, text, ranges])).toEqual([
    ['\u001b]0;x\u0007', 'needle', [[0, 6]]],
    ['f\udcff', '\udce9 needle', [[2, 8]]],
    ['new\nline', 'needle', [[0, 6]]],
  ])
})

test('reports the start of a 50 MB line', async () => {
  plant('big', `needle${'x'.repeat(50_000_000)}needle\nneedle\n`)
  const found = await search('q=needle')
  expect(found).toMatchObject([
    { path: 'big', line: 1, ranges: [[0, 6]], cut: true },
    { path: 'big', line: 2, text: 'needle' },
    { matches: 2, files: 1, truncated: false },
  ])
})

test('follows no link and does not block on a pipe', async () => {
  symlinkSync('/etc/passwd', join(root, 'link'))
  symlinkSync('/etc', join(root, 'folder'))
  Bun.spawnSync(['mkfifo', join(root, 'pipe')])
  expect(await search('q=root')).toMatchObject([{ type: 'end', matches: 0, files: 0, truncated: false }])
})

test('reports the limit that truncated the result: matches, bytes', async () => {
  for (const name of ['a', 'b', 'c']) plant(name, 'needle\n'.repeat(10))
  expect((await search('q=needle&limit=30')).at(-1)).toMatchObject({
    matches: 30,
    files: 3,
    truncated: false,
  })
  expect((await search('q=needle&limit=29')).at(-1)).toMatchObject({ matches: 29, truncated: 'matches' })
  expect((await search('q=needle&limit=10&glob=a')).at(-1)).toMatchObject({ matches: 10, truncated: false })
  expect((await search('q=needle&limit=9&glob=a')).at(-1)).toMatchObject({ matches: 9, truncated: 'matches' })
  const few = await search('q=needle', { budget: { ...SEARCH_BUDGET, maxBytes: 500 } })
  expect(few.at(-1)).toMatchObject({ truncated: 'bytes' })
  expect(few.length).toBeGreaterThan(2)
  expect(
    Buffer.byteLength(
      few
        .slice(0, -1)
        .map((line) => JSON.stringify(line))
        .join('\n'),
    ),
  ).toBeLessThan(501)
})

test('stays within its time limit (threat T20)', async () => {
  plantEndless()
  const late = await search('q=(x%2Bx%2B)%2By&regex=1', { budget: { ...SEARCH_BUDGET, timeMs: 300 } })
  expect(late).toEqual([{ type: 'end', matches: 0, files: 0, truncated: 'time' }] as never)
  await eventually(() => !isRunning(), { what: 'rg to end' })
})

test.each([
  ['q=(&regex=1', 'Cannot use parameter "q": unclosed group'],
  [`q=${encode('a\nb')}`, 'Cannot use parameter "q": a pattern cannot span lines'],
  ['q=x&glob=[', 'Cannot use parameter "glob": error parsing glob'],
  ['q=(%3F=x)&regex=1', 'Cannot use parameter "q": look-around'],
  ['q=', 'Cannot use parameter "q": empty'],
  ['', 'Cannot use parameter "q": missing'],
  ['q=%FF', 'Cannot use parameter "q": not UTF-8'],
  ['q=a%00b', 'Cannot use parameter "q": contains a NUL byte'],
  [`q=${'x'.repeat(1_000_000)}`, 'Cannot use parameter "q": more than 4096 bytes'],
  ['q=x&glob=', 'Cannot use parameter "glob": empty'],
  ['q=x&case=any', 'Cannot use parameter "case": expected'],
  ['q=x&context=21', 'Cannot use parameter "context"'],
  ['q=x&limit=0', 'Cannot use parameter "limit"'],
  [`q=x${'&glob=x'.repeat(33)}`, 'Cannot use parameter "glob": more than 32'],
])('refuses an invalid parameter and names it (threat T20): %s', async (query, message) => {
  const error = await rejectionOf((async () => open(query))())
  expect(error).toMatchObject({ code: 'bad_request' })
  expect(error.message).toStartWith(message)
})

// Messages of ripgrep 14 and 15.
test.each([
  ['rg: regex parse error:\n    (?:()\n    ^^\nerror: unclosed group\n', '"q": unclosed group'],
  ["rg: error parsing glob '[': unclosed character class\n", `"glob": error parsing glob '['`],
  ['rg: the literal "\\n" is not allowed in a regex\n\nConsider …', '"q": a pattern cannot span lines'],
  ['rg: \u001b[31mred\u202e\n', '"q": [31mred'],
])('reports the error message of a newer ripgrep: %j', async (said, message) => {
  const refused: RunTool = async () => ({
    stdout: new Blob([]).stream(),
    stderr: Promise.resolve(said),
    exited: Promise.resolve({ code: 2, signal: null, isLate: false }),
  })
  const error = await rejectionOf(open('q=x', { runTool: refused }))
  expect(error.message).toStartWith(`Cannot use parameter ${message}`)
})

test('reports that ripgrep is not installed', async () => {
  const error = await rejectionOf(open('q=x', { runTool: toolOf({ PATH: root }), ripgrep: 'rg' }))
  expect(error).toMatchObject({
    code: 'command_not_found',
    message: 'Cannot search: ripgrep is not installed in the sandbox',
  })
})

test('runs nothing that a pattern, a glob or a configuration names (threat T20)', async () => {
  const script = join(root, 'pre.sh')
  plant('pre.sh', `#!/bin/sh\ntouch ${marker}\ncat\n`)
  chmodSync(script, 0o755)
  plant('.ripgreprc', `--pre=${script}\n`)
  plant('data', 'needle\n')
  const env = { RIPGREP_CONFIG_PATH: join(root, '.ripgreprc') }
  const runTool: RunTool = (plan) => toolOf(env)({ ...plan, env })
  const words = [
    `--pre=${script}`,
    `--pre ${script}`,
    '-f/etc/passwd',
    `--hostname-bin=${script}`,
    '--search-zip',
    '-uuu',
    '--',
    '-',
    '--no-config',
    '--files',
    '--follow',
    '-L',
    '--json',
    '-z',
  ]
  for (const word of words) {
    expect((await search(`q=${encode(word)}`, { runTool })).at(-1)).toMatchObject({ type: 'end' })
    await search(`q=needle&glob=${encode(word)}`, { runTool })
    await search(`q=needle&glob=${encode(`!${word}`)}`, { runTool })
  }
  expect((await search('q=needle', { runTool })).at(-1)).toMatchObject({ matches: 1 })
  expect(existsSync(marker)).toBe(false)
})

test('ends ripgrep when the client disconnects, before and after the first match', async () => {
  plantEndless()
  const early = new AbortController()
  const waiting = open('q=needle', { signal: early.signal })
  await eventually(isRunning, { what: 'rg to run' })
  early.abort()
  expect(await rejectionOf(waiting)).toMatchObject({ code: 'link_lost' })
  await eventually(() => !isRunning(), { what: 'rg to end' })

  for (let count = 0; count < 400; count += 1) plant(`found-${count}`, 'needle\n')
  const before = readProcessCounts(process.pid).fds
  const reader = (await open('q=needle')).getReader()
  await reader.read()
  expect(isRunning()).toBe(true)
  await reader.cancel()
  await eventually(() => !isRunning(), { what: 'rg to end' })
  await eventually(() => readProcessCounts(process.pid).fds <= before, { what: 'descriptors to be closed' })

  const late = new AbortController()
  await open('q=needle', { signal: late.signal })
  expect(isRunning()).toBe(true)
  late.abort()
  await eventually(() => !isRunning(), { what: 'rg to end' })
  await eventually(() => readProcessCounts(process.pid).fds <= before, { what: 'descriptors to be closed' })
})

test('reports that ripgrep was killed', async () => {
  plantEndless()
  for (let count = 0; count < 400; count += 1) plant(`found-${count}`, 'needle\n')
  const text = new Response(await open('q=needle')).text()
  const rg = readDescendants(process.pid).find(({ name }) => name === 'rg')
  if (rg === undefined) throw new Error('Expected ripgrep to run')
  process.kill(rg.pid, 'SIGKILL')
  expect(JSON.parse((await text).trimEnd().split('\n').at(-1) ?? '')).toEqual({
    type: 'error',
    error: { code: 'sandbox_failed', message: 'Cannot finish the search: ripgrep was killed' },
  })
})
