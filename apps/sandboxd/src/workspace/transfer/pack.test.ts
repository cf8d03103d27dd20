import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { type TarEvent, type TarNote, TarReader } from '@sandwire/tar'
import { eventually } from '@sandwire/testing'
import { packFolder } from './pack.ts'
import { Fixture } from './transfer.fixture.ts'
import { unpack } from './unpack.ts'

let fixture: Fixture
beforeEach(() => {
  fixture = new Fixture()
})
afterEach(() => fixture[Symbol.dispose]())

function pack(folder: string, after?: string, { files } = fixture): AsyncGenerator<Uint8Array, void, void> {
  return packFolder(folder, { files, transfer: files, after })
}

async function collect(archive: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const part of archive) parts.push(part)
  return Buffer.concat(parts)
}

function eventsOf(archive: Uint8Array): readonly TarEvent[] {
  return [...new TarReader().push(archive)]
}

function notesOf(archive: Uint8Array): readonly TarNote[] {
  return eventsOf(archive).flatMap((event) => (event.kind === 'note' ? [event.note] : []))
}

function pathsOf(archive: Uint8Array): readonly string[] {
  return eventsOf(archive).flatMap((event) => (event.kind === 'entry' ? [event.entry.path] : []))
}

/** Names of any bytes, modes, times, links, large and small files. */
function makeNastyTree(): void {
  mkdirSync(fixture.at('tree/empty'), { recursive: true })
  mkdirSync(fixture.at(`tree/${'deep/'.repeat(30)}`), { recursive: true })
  mkdirSync(fixture.at('tree/a'))
  writeFileSync(fixture.at('tree/a/x'), 'in a')
  writeFileSync(fixture.at('tree/a-b'), 'beside a')
  writeFileSync(fixture.at('tree/new\nline -rf \u{1f984}'), 'odd')
  writeFileSync(Buffer.concat([Buffer.from(fixture.at('tree/')), Buffer.from([0x62, 0xff, 0xfe])]), 'bytes')
  writeFileSync(fixture.at('tree/large'), Buffer.alloc(2_500_001, 3))
  writeFileSync(fixture.at('tree/none'), 'no rights')
  chmodSync(fixture.at('tree/none'), 0o000)
  chmodSync(fixture.at('tree/a/x'), 0o755)
  symlinkSync('a/x', fixture.at('tree/link'))
  symlinkSync('nowhere', fixture.at('tree/dangling'))
  utimesSync(fixture.at('tree/a/x'), 1_600_000_000, 1_600_000_000.5)
  utimesSync(fixture.at('tree/a'), 1_500_000_000, 1_500_000_000)
}

const facts = (folder: string): string =>
  Bun.spawnSync(['find', '.', '-mindepth', '1', '-printf', '%P %M %T@ %s %l\\0'], { cwd: folder })
    .stdout.toString('latin1')
    .split('\0')
    .map((line) => (/ d[rwx-]{9} /.test(line) ? line.replace(/ [0-9]+ $/, '') : line))
    .toSorted()
    .join('\n')

test('a tree survives packing and unpacking, also with GNU tar', async () => {
  makeNastyTree()
  const archive = await collect(pack('tree'))
  mkdirSync(fixture.at('copy'))
  const { refused } = await unpack(pack('tree'), fixture.files, { folder: 'copy', depth: 1 })
  expect(refused).toEqual([])
  expect(facts(fixture.at('copy'))).toBe(facts(fixture.at('tree')))
  expect(readFileSync(fixture.at('copy/large')).equals(readFileSync(fixture.at('tree/large')))).toBe(true)
  mkdirSync(fixture.at('by-tar'))
  const done = Bun.spawnSync(['tar', '-xp', '-C', fixture.at('by-tar')], { stdin: archive })
  expect(done.stderr.toString()).toBe('')
  expect(facts(fixture.at('by-tar'))).toBe(facts(fixture.at('tree')))
  expect(await collect(pack('tree'))).toEqual(archive)
})

test('packing continues after any entry', async () => {
  makeNastyTree()
  const whole = pathsOf(await collect(pack('tree')))
  expect(whole.slice(0, 4)).toEqual(['a/', 'a/x', 'a-b', 'b\udcff\udcfe'])
  for (const [at, path] of whole.entries()) {
    const after = path.replace(/\/$/, '')
    expect(pathsOf(await collect(pack('tree', after)))).toEqual(whole.slice(at + 1))
  }
})

test('replaces special files by a note and skips partial uploads', async () => {
  mkdirSync(fixture.at('tree'))
  Bun.spawnSync(['mkfifo', fixture.at('tree/pipe')])
  writeFileSync(fixture.at('tree/z'), '')
  writeFileSync(fixture.at(`tree/.sandwire-upload-${'0'.repeat(32)}`), 'half')
  const events = eventsOf(await collect(pack('tree')))
  expect(events.map((event) => (event.kind === 'note' ? event.note : event.kind))).toEqual([
    { code: 'special_file', path: 'pipe' },
    'entry',
    'complete',
    'end',
  ])
})

test('aborts the archive when a file is truncated while it is packed', async () => {
  mkdirSync(fixture.at('tree'))
  writeFileSync(fixture.at('tree/large'), Buffer.alloc(5_000_000))
  const parts: Uint8Array[] = []
  const packing = async (): Promise<void> => {
    for await (const part of pack('tree')) {
      parts.push(part)
      truncateSync(fixture.at('tree/large'), 1000)
    }
  }
  expect(await packing().then(() => 'ended', String)).toContain('was truncated')
  const reader = new TarReader()
  expect([...reader.push(Buffer.concat(parts))].some(({ kind }) => kind === 'complete')).toBe(false)
})

test('reports a file that changes while it is packed', async () => {
  mkdirSync(fixture.at('tree'))
  writeFileSync(fixture.at('tree/large'), Buffer.alloc(2_000_000))
  const parts: Uint8Array[] = []
  for await (const part of pack('tree')) {
    if (parts.length === 1) writeFileSync(fixture.at('tree/large'), 'x', { flag: 'a' })
    parts.push(part)
  }
  expect(notesOf(Buffer.concat(parts))).toEqual([{ code: 'file_changed', path: 'large' }])
})

test('packs an unreadable folder and reports that its contents are missing', async () => {
  // Root may read everything.
  using common = new Fixture(process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined)
  for (const [name, mode] of [
    ['blind', 0o444],
    ['closed', 0o000],
    ['open', 0o755],
  ] as const) {
    mkdirSync(common.at(`tree/${name}`), { recursive: true })
    writeFileSync(common.at(`tree/${name}/file`), '')
    chmodSync(common.at(`tree/${name}`), mode)
  }
  const archive = await collect(pack('tree', undefined, common))
  expect(pathsOf(archive)).toEqual(['blind/', 'closed/', 'open/', 'open/file'])
  expect(notesOf(archive)).toEqual([
    { code: 'file_refused', path: 'blind' },
    { code: 'file_refused', path: 'closed' },
  ])
  for (const name of ['blind', 'closed']) chmodSync(common.at(`tree/${name}`), 0o755)
})

test('packs a small file that is being written', async () => {
  mkdirSync(fixture.at('tree'))
  const script = 'while :; do printf "line\\n" >> grown; done'
  const writer = Bun.spawn(['sh', '-c', script], { cwd: fixture.at('tree') })
  try {
    await eventually(() => fixture.has('tree/grown'), { what: 'the file' })
    for (let round = 0; round < 20; round += 1) {
      const archive = await collect(pack('tree'))
      expect(pathsOf(archive)).toEqual(['grown'])
      expect(eventsOf(archive).at(-1)?.kind).toBe('end')
    }
  } finally {
    writer.kill('SIGKILL')
    await writer.exited
  }
})

test('reports entries that are too deep or too long without ending the archive', async () => {
  const makeDeep = `
import os
for name, times in (('d', 300), ('n' * 200, 30)):
    os.chdir(os.environ['TOP'])
    for _ in range(times):
        os.mkdir(name)
        os.chdir(name)
`
  mkdirSync(fixture.at('tree'))
  Bun.spawnSync(['python3', '-c', makeDeep], { env: { ...process.env, TOP: fixture.at('tree') } })
  writeFileSync(fixture.at('tree/z'), '')
  const archive = await collect(pack('tree'))
  expect(pathsOf(archive).at(-1)).toBe('z')
  expect(notesOf(archive).map(({ code }) => code)).toEqual(['path_refused', 'path_refused'])
})
