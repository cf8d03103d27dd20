import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TarBuffer, type TarEntry } from '@sandwire/tar'
import { type CommandRun, runInProcess } from './in-process.ts'

const ENV = { SBX_TOKEN: `swl_${'t'.repeat(43)}` }

let server: ReturnType<typeof Bun.serve>
/** The stat response for every path. */
let stat: object
let answer: (url: URL) => Response
let outer: string
let target: string

beforeAll(() => {
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      const url = new URL(request.url)
      return url.pathname.endsWith('/stat') ? Response.json(stat) : answer(url)
    },
  })
})
afterAll(() => server.stop(true))

beforeEach(() => {
  outer = mkdtempSync(join(tmpdir(), 'cli-hostile-'))
  target = join(outer, 'target')
  mkdirSync(target)
  writeFileSync(join(outer, 'outside'), 'untouched')
  stat = { kind: 'folder', size: 0, mode: 0o755, mtimeMs: 0, etag: 'e' }
})
afterEach(() => rmSync(outer, { recursive: true, force: true }))

function cli(...argv: string[]): Promise<CommandRun> {
  return runInProcess([...argv, '--url', `http://127.0.0.1:${server.port}`], { env: ENV })
}

type Entry = Partial<TarEntry> & { readonly path: string; readonly text?: string; readonly type?: string }

function archiveOf(entries: readonly Entry[]): Uint8Array<ArrayBuffer> {
  const archive = new TarBuffer()
  const parts = entries.flatMap(({ text = '', type, kind = 'file', ...entry }) => {
    const bytes = new TextEncoder().encode(text)
    const facts = { mode: 0o644, mtimeNs: '1700000000000000000', sizeBytes: bytes.length, ...entry }
    archive.entry({ ...facts, kind: kind === 'special' ? 'file' : kind })
    const head = archive.take()
    if (type !== undefined) setType(head.subarray(-512), type)
    archive.content(bytes)
    return [head, archive.take()]
  })
  archive.end()
  return Uint8Array.from(Buffer.concat([...parts, archive.take()]))
}

function setType(block: Uint8Array, type: string): void {
  block[156] = type.charCodeAt(0)
  block.fill(0x20, 148, 156)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.set(new TextEncoder().encode(`${sum.toString(8).padStart(6, '0')}\0 `), 148)
}

function isOutsideUntouched(): boolean {
  const names = readdirSync(outer).toSorted().join()
  return names === 'outside,target' && readFileSync(join(outer, 'outside'), 'utf8') === 'untouched'
}

const HOSTILE: readonly (readonly [string, readonly Entry[]])[] = [
  ['a name with ".."', [{ path: '../planted', text: 'x' }]],
  ['a name that goes down and up', [{ path: 'a/../../planted', text: 'x' }]],
  ['an absolute name', [{ path: '/tmp/sandwire-planted', text: 'x' }]],
  ['a link out', [{ path: 'l', kind: 'link', target: '..' }]],
  ['an absolute link', [{ path: 'l', kind: 'link', target: '/etc' }]],
  [
    'a link inside and a file through it',
    [
      { path: 'd', kind: 'folder' },
      { path: 'l', kind: 'link', target: 'd' },
      { path: 'l/planted', text: 'x' },
    ],
  ],
  [
    'links that leave one after the other',
    [
      { path: 'd', kind: 'folder' },
      { path: 'd/up', kind: 'link', target: '..' },
      { path: 'out', kind: 'link', target: 'd/up/../outside' },
    ],
  ],
  ['a hard link', [{ path: 'h', kind: 'hard-link', target: '../outside' }]],
  ['a device', [{ path: 'dev', type: '3' }]],
  ['a pipe', [{ path: 'pipe', type: '6' }]],
  ['a name with a NUL', [{ path: `a\0${'b'.repeat(200)}`, text: 'x' }]],
  ['folders in folders in folders', [{ path: `${'d/'.repeat(300)}f`, text: 'x' }]],
  [
    'a name over a folder of its own',
    [
      { path: 'd', kind: 'folder' },
      { path: 'd', text: 'x' },
    ],
  ],
]

test.each([...HOSTILE])(
  'cp writes nothing outside when the server sends %s (threat T17)',
  async (_, entries) => {
    answer = () => new Response(archiveOf([...entries, { path: 'innocent', text: 'good' }]))
    const { stderr, code } = await cli('cp', 'box:dir', join(target, 'copy'))
    expect([stderr.includes('skipped'), code]).toEqual([true, 1])
    expect(isOutsideUntouched()).toBe(true)
    expect(existsSync('/tmp/sandwire-planted')).toBe(false)
    expect(readdirSync(target)).toEqual(['copy'])
    expect(readFileSync(join(target, 'copy/innocent'), 'utf8')).toBe('good')
    const kinds = readdirSync(join(target, 'copy')).map((name) => lstatSync(join(target, 'copy', name)))
    expect(kinds.some((each) => each.isFIFO() || each.isCharacterDevice())).toBe(false)
  },
)

test('cp follows no link in the target folder (threat T17)', async () => {
  symlinkSync('..', join(target, 'up'))
  symlinkSync('../outside', join(target, 'file'))
  answer = () =>
    new Response(
      archiveOf([
        { path: 'up/planted', text: 'x' },
        { path: 'up', kind: 'folder', mode: 0o000 },
        { path: 'file', text: 'new' },
      ]),
    )
  expect((await cli('cp', 'box:dir/.', target)).code).toBe(1)
  expect(isOutsideUntouched()).toBe(true)
  expect(readFileSync(join(target, 'file'), 'utf8')).toBe('new')
  expect(lstatSync(join(target, 'file')).isSymbolicLink()).toBe(false)
})

test('cp drops setuid bits (threat T17)', async () => {
  answer = () =>
    new Response(
      archiveOf([
        { path: 'f', mode: 0o6755, text: 'x' },
        { path: 'd', kind: 'folder', mode: 0o7755 },
      ]),
    )
  expect((await cli('cp', 'box:dir/.', target)).code).toBe(0)
  for (const name of ['f', 'd']) expect(lstatSync(join(target, name)).mode & 0o7777).toBe(0o755)
})

test('the local file name never comes from the server', async () => {
  stat = { kind: 'file', size: 3, mode: 0o644, mtimeMs: 0, etag: 'e', name: '../planted', path: '../planted' }
  answer = () =>
    new Response('abc', { headers: { 'content-disposition': 'attachment; filename=../planted' } })
  expect((await cli('cp', 'box:dir/file', target)).code).toBe(0)
  expect(readdirSync(target)).toEqual(['file'])
  expect(isOutsideUntouched()).toBe(true)
})

test('refuses an invalid archive and an invalid stat', async () => {
  answer = () => new Response('x'.repeat(2000))
  const repaintNeeded = await cli('cp', 'box:dir/.', target)
  expect([repaintNeeded.stderr.split('\n')[0], repaintNeeded.code]).toEqual([
    'sbx-stdio: Cannot read the archive: a header is damaged',
    2,
  ])
  stat = { kind: 'file', size: 'many', mode: -1 }
  const odd = await cli('cp', 'box:file', target)
  expect([odd.stderr.split('\n')[0], odd.code]).toEqual([
    'sbx-stdio: Cannot understand the response of the server',
    255,
  ])
  expect(readdirSync(target)).toEqual([])
})

test('prints messages of the server in printable characters (threat T24)', async () => {
  answer = () =>
    Response.json({ error: { code: 'file_refused', message: 'no\x1b]0;owned\x07\u202e' } }, { status: 403 })
  const { stderr } = await cli('cp', 'box:dir/.', target)
  expect(stderr.split('\n')[0]).toBe('sbx-stdio: no ]0;owned')
})
