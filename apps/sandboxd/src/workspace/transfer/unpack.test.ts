import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Random } from '@sandwire/testing'
import { archiveOf, mendChecksums, type Packed, Fixture, slices } from './transfer.fixture.ts'
import { unpack, type Unpacked } from './unpack.ts'

let fixture: Fixture
beforeEach(() => {
  fixture = new Fixture()
})
afterEach(() => fixture[Symbol.dispose]())

function put(archive: Uint8Array, folder = '.', depth = 0): Promise<Unpacked> {
  return unpack(slices(archive), fixture.files, { folder, depth })
}

describe('unpacking', () => {
  test('unpacks an archive of GNU tar', async () => {
    const source = join(fixture.root, 'source')
    mkdirSync(join(source, 'a/b/empty'), { recursive: true })
    writeFileSync(join(source, 'a/run.sh'), '#!/bin/sh\n')
    chmodSync(join(source, 'a/run.sh'), 0o755)
    writeFileSync(join(source, 'a/b/large'), Buffer.alloc(3_000_000, 7))
    writeFileSync(Buffer.concat([Buffer.from(`${source}/a/`), Buffer.from([0x66, 0xff, 0x0a])]), 'odd')
    symlinkSync('../a/run.sh', join(source, 'a/link'))
    linkSync(join(source, 'a/run.sh'), join(source, 'a/second'))
    utimesSync(join(source, 'a/run.sh'), 1_600_000_000, 1_600_000_000.25)
    chmodSync(join(source, 'a/b/empty'), 0o500)
    utimesSync(join(source, 'a/b'), 1_500_000_000, 1_500_000_000)
    const { stdout } = Bun.spawnSync(['tar', '-c', '--format=pax', '-C', source, '.'])
    mkdirSync(fixture.at('target'))
    expect(await put(stdout, 'target', 1)).toEqual({
      entries: 8,
      bytes: 3_000_013,
      refused: [],
      refusedMore: 0,
    })
    const listed = (folder: string): string =>
      Bun.spawnSync(['find', '.', '-printf', '%P %M %T@ %n %l\\n'], { cwd: folder })
        .stdout.toString('latin1')
        .split('\n')
        // Only names in the archive itself.
        .filter((line) => !line.startsWith(' '))
        .toSorted()
        .join('\n')
    expect(listed(fixture.at('target'))).toBe(listed(source))
    expect(readFileSync(fixture.at('target/a/b/large')).equals(Buffer.alloc(3_000_000, 7))).toBe(true)
    expect(fixture.unfinished).toEqual([])
  })

  test('the last of two entries with the same name wins', async () => {
    const archive = archiveOf([
      { path: 'a', text: 'first' },
      { path: './a', text: 'x'.repeat(400_000) },
      { path: 'a', text: 'last' },
    ])
    await put(archive)
    expect(readFileSync(fixture.at('a'), 'utf8')).toBe('last')
  })

  test('drops setuid, setgid and sticky bits (threat T17)', async () => {
    await put(
      archiveOf([
        { path: 'small', mode: 0o6755 },
        { path: 'large', mode: 0o6755, text: 'x'.repeat(300_000) },
        { path: 'folder', kind: 'folder', mode: 0o7755 },
      ]),
    )
    for (const name of ['small', 'large', 'folder'])
      expect(statSync(fixture.at(name)).mode & 0o7777).toBe(0o755)
  })

  test('reports a truncated archive and writes no incomplete entry', async () => {
    const whole = archiveOf([
      { path: 'a', text: 'whole' },
      { path: 'large', text: 'x'.repeat(1_000_000) },
    ])
    const cut = unpack(slices(whole.subarray(0, 600_000)), fixture.files, { folder: '.', depth: 0 })
    await cut.then(
      () => expect.unreachable(),
      (error: unknown) => expect(String(error)).toContain('it ends too early'),
    )
    expect(readdirSync(fixture.root)).toEqual(['a'])
  })

  test('does not allocate the size that a header claims', async () => {
    const archive = archiveOf([{ path: 'big', text: '', mtimeNs: '0' }]).slice()
    // Claims five gibibytes that do not follow.
    archive.set(new TextEncoder().encode((5 * 1024 ** 3).toString(8).padStart(11, '0')), 124)
    archive.fill(0x20, 148, 156)
    const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0)
    archive.set(new TextEncoder().encode(`${sum.toString(8).padStart(6, '0')}\0 `), 148)
    await put(archive).then(
      () => expect.unreachable(),
      (error: unknown) => expect(String(error)).toContain('it ends too early'),
    )
    expect(readdirSync(fixture.root)).toEqual([])
  })
})

const LARGE = 'x'.repeat(300_000)
const HOSTILE: readonly (readonly [string, readonly Packed[]])[] = [
  ['a name with ".."', [{ path: '../planted', text: 'x' }]],
  ['a large file with ".."', [{ path: 'a/../../planted', text: LARGE }]],
  ['an absolute name', [{ path: '/tmp/sandwire-planted', text: 'x' }]],
  [
    'a link out and a file through it',
    [
      { path: 'l', kind: 'link', target: '..' },
      { path: 'l/planted', text: 'x' },
    ],
  ],
  [
    'a link out and a large file through it',
    [
      { path: 'l', kind: 'link', target: '..' },
      { path: 'l/planted', text: LARGE },
    ],
  ],
  ['an absolute link', [{ path: 'l', kind: 'link', target: '/etc/passwd' }]],
  [
    'links that leave one after the other',
    [
      { path: 'd', kind: 'folder' },
      { path: 'd/up', kind: 'link', target: '..' },
      { path: 'out', kind: 'link', target: 'd/up/../outside' },
    ],
  ],
  ['a hard link out', [{ path: 'h', kind: 'hard-link', target: '../outside' }]],
  ['an absolute hard link', [{ path: 'h', kind: 'hard-link', target: '/etc/passwd' }]],
  ['a device', [{ path: 'null', type: '3' }]],
  ['a block device', [{ path: 'disk', type: '4' }]],
  ['a pipe', [{ path: 'pipe', type: '6' }]],
  ['a kind that nobody knows', [{ path: 'odd', type: 'Q', text: 'x' }]],
  ['folders in folders in folders', [{ path: `${'d/'.repeat(300)}f`, text: 'x' }]],
]

test.each([...HOSTILE])('refuses %s and touches nothing outside (threat T17)', async (_, entries) => {
  const { refused } = await put(archiveOf([...entries, { path: 'innocent', text: 'good' }]))
  expect(refused.length).toBeGreaterThan(0)
  expect(fixture.isOutsideUntouched).toBe(true)
  expect(readFileSync(fixture.at('innocent'), 'utf8')).toBe('good')
  expect(fixture.unfinished).toEqual([])
  for (const name of readdirSync(fixture.root)) {
    const stat = lstatSync(fixture.at(name))
    expect(stat.isFile() || stat.isDirectory()).toBe(name !== 'l' || !stat.isSymbolicLink())
  }
})

test.each(['x', LARGE])(
  'creates a link that stays inside, and writes no file through it (threat T17)',
  async (text) => {
    mkdirSync(fixture.at('other'))
    const entries: Packed[] = [
      { path: 'in/l', kind: 'link', target: '../other' },
      { path: 'in/l/planted', text },
    ]
    const { refused } = await put(archiveOf(entries))
    expect(refused.map(({ path }) => path)).toEqual(['in/l/planted'])
    expect(readlinkSync(fixture.at('in/l'))).toBe('../other')
    expect(readdirSync(fixture.at('other'))).toEqual([])
  },
)

test('does not follow an existing link (threat T17)', async () => {
  symlinkSync('..', fixture.at('up'))
  symlinkSync('../outside', fixture.at('file'))
  const { refused } = await put(
    archiveOf([
      { path: 'up/planted', text: 'x' },
      { path: 'up', kind: 'folder' },
      { path: 'file', text: 'replaced' },
    ]),
  )
  expect(refused.map(({ path }) => path)).toEqual(['up/planted', 'up'])
  expect(fixture.isOutsideUntouched).toBe(true)
  expect(lstatSync(fixture.at('file')).isFile()).toBe(true)
})

test('a file does not replace a folder, nor a folder a file', async () => {
  mkdirSync(fixture.at('folder'))
  writeFileSync(fixture.at('file'), 'kept')
  const { refused } = await put(
    archiveOf([
      { path: 'folder', text: 'x' },
      { path: 'folder', text: LARGE },
      { path: 'file', kind: 'folder' },
      { path: 'file/inner', text: 'x' },
    ]),
  )
  expect(refused.map(({ path }) => path)).toEqual(['folder', 'folder', 'file', 'file/inner'])
  expect(readFileSync(fixture.at('file'), 'utf8')).toBe('kept')
  expect(fixture.unfinished).toEqual([])
})

test('lists refused entries up to a limit and counts the rest', async () => {
  const entries = Array.from({ length: 1_500 }, (_, at) => ({ path: `../${at}` }))
  const { refused, refusedMore, entries: made } = await put(archiveOf(entries))
  expect([refused.length, refusedMore, made]).toEqual([1_000, 500, 0])
})

test('aborts an archive with too many entries or bytes and leaves nothing incomplete (threat T17)', async () => {
  const limits = { maxEntries: 5, maxBytes: 500_000 }
  const many = archiveOf(Array.from({ length: 6 }, (_, at) => ({ path: `many/${at}` })))
  const long = archiveOf([
    { path: 'refused/../..', text: 'x'.repeat(300_000) },
    { path: 'long', text: LARGE },
  ])
  for (const archive of [many, long]) {
    const unpacked = unpack(slices(archive), fixture.files, { folder: '.', depth: 0, limits })
    expect(await unpacked.catch((error: unknown) => error)).toMatchObject({ code: 'file_too_large' })
  }
  expect([fixture.has('long'), fixture.unfinished.length]).toEqual([false, 0])
})

test('mutated archives touch nothing outside and leave nothing unfinished (threat T17)', async () => {
  const whole = archiveOf([
    { path: 'd', kind: 'folder' },
    { path: 'd/../l', kind: 'link', target: '../outside' },
    { path: `d/${'n'.repeat(120)}/f`, text: 'x'.repeat(700) },
    { path: 'd/l', kind: 'link', target: '..' },
    { path: 'd/l/../../outside', text: 'planted' },
    { path: 'h', kind: 'hard-link', target: '../outside' },
    { path: 'large', text: LARGE },
  ])
  for (let seed = 0; seed < 150; seed += 1) {
    const random = new Random(seed)
    const mutated = whole.slice()
    // Mutates headers, which are at the start; the rest is mostly one file.
    for (let count = 1 + Math.floor(random.next() * 6); count > 0; count -= 1)
      mutated[Math.floor(random.next() * 9_000)] = Math.floor(random.next() * 256)
    mendChecksums(mutated)
    const { refused } = await put(mutated).catch(() => ({ refused: [] }))
    if (!fixture.isOutsideUntouched || fixture.unfinished.length > 0 || refused.length > 1_000)
      throw new Error(`Seed ${seed} did something else`)
  }
})
