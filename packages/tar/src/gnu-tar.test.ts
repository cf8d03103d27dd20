import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToBytes } from '@sandwire/protocol'
import { paddingOf, type TarEntry } from './entry.ts'
import { TarReader } from './tar-reader.ts'
import { TAR_END, writeEntry, writeNote } from './pieces.fixture.ts'

const LONG = `${'long-folder/'.repeat(20)}${'n'.repeat(150)}`
const INVALID = 'caf\udce9\udcff'
const ODD = 'new\nline \u{1f984} -rf\t'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tar-codec-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Read extends TarEntry {
  readonly text: string
}

function readAll(archive: Uint8Array, sliceBytes: number): readonly Read[] {
  const reader = new TarReader()
  const found: { entry: TarEntry; chunks: Uint8Array[] }[] = []
  for (let at = 0; at < archive.length; at += sliceBytes)
    for (const event of reader.push(archive.subarray(at, at + sliceBytes))) {
      if (event.kind === 'entry') found.push({ entry: event.entry, chunks: [] })
      if (event.kind === 'bytes') found.at(-1)?.chunks.push(event.bytes.slice())
    }
  reader.end()
  return found.map(({ entry, chunks }) => ({ ...entry, text: Buffer.concat(chunks).toString() }))
}

function tar(args: readonly string[], stdin?: Uint8Array): Uint8Array {
  const done = Bun.spawnSync(['tar', ...args], {
    stdin: stdin ?? 'ignore',
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C.UTF-8' },
  })
  expect(done.stderr.toString()).toBe('')
  expect(done.exitCode).toBe(0)
  return done.stdout
}

function bytesPath(base: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${base}/`), pathToBytes(path) ?? new Uint8Array(0)])
}

/** A tree with unusual names, modes and times. */
function makeTree(base: string): void {
  mkdirSync(join(base, 'empty'), { recursive: true })
  mkdirSync(join(base, 'long-folder/'.repeat(20)), { recursive: true })
  writeFileSync(join(base, LONG), 'deep')
  writeFileSync(bytesPath(base, INVALID), 'bytes')
  writeFileSync(join(base, ODD), 'odd')
  writeFileSync(join(base, 'x'.repeat(200)), 'x'.repeat(1000))
  writeFileSync(join(base, 'run.sh'), '#!/bin/sh\n')
  chmodSync(join(base, 'run.sh'), 0o755)
  symlinkSync(LONG, join(base, 'to-long'))
  symlinkSync('run.sh', join(base, 'to-run'))
  utimesSync(join(base, 'run.sh'), 1_700_000_000, 1_700_000_000.123_456)
  utimesSync(join(base, ODD), 1, 1)
}

test.each(['gnu', 'pax', 'ustar'])('reads an archive of GNU tar in format %s unchanged', (format) => {
  const base = join(folder, `from-${format}`)
  makeTree(base)
  // Not supported by this format.
  if (format === 'ustar')
    for (const name of ['x'.repeat(200), 'to-long', 'long-folder'])
      rmSync(join(base, name), { recursive: true })
  const archive = tar(['-c', `--format=${format}`, '-C', base, '.'])
  const whole = readAll(archive, archive.length)
  for (const sliceBytes of [1, 511, 513]) expect(readAll(archive, sliceBytes)).toEqual([...whole])
  const byPath = new Map(whole.map((entry) => [entry.path, entry]))
  expect(byPath.get(`./${INVALID}`)).toMatchObject({ kind: 'file', sizeBytes: 5, text: 'bytes' })
  expect(byPath.get(`./${ODD}`)).toMatchObject({ text: 'odd', mtimeNs: '1000000000' })
  expect(byPath.get('./run.sh')?.mode).toBe(0o755)
  expect(byPath.get('./run.sh')?.mtimeNs.slice(0, 10)).toBe('1700000000')
  if (format === 'pax') expect(byPath.get('./run.sh')?.mtimeNs.slice(0, 16)).toBe('1700000000123456')
  expect(byPath.get('./empty/')).toMatchObject({ kind: 'folder', sizeBytes: 0 })
  expect(byPath.get('./to-run')).toMatchObject({ kind: 'link', target: 'run.sh' })
  if (format === 'ustar') return
  expect(byPath.get(`./${LONG}`)).toMatchObject({ text: 'deep' })
  expect(byPath.get(`./${'x'.repeat(200)}`)).toMatchObject({ sizeBytes: 1000 })
  expect(byPath.get('./to-long')?.target).toBe(LONG)
})

test('distinguishes hard links, pipes and setuid bits of GNU tar', () => {
  const base = join(folder, 'kinds')
  mkdirSync(base)
  writeFileSync(join(base, 'a'), 'same')
  Bun.spawnSync(['ln', 'a', 'b'], { cwd: base })
  Bun.spawnSync(['mkfifo', 'pipe'], { cwd: base })
  writeFileSync(join(base, 'suid'), '')
  chmodSync(join(base, 'suid'), 0o4755)
  const entries = readAll(tar(['-c', '-C', base, 'a', 'b', 'pipe', 'suid']), 512)
  expect(entries.map(({ path, kind, mode }) => [path, kind, mode > 0o777])).toEqual([
    ['a', 'file', false],
    ['b', 'hard-link', false],
    ['pipe', 'special', false],
    ['suid', 'file', true],
  ])
  expect(entries[1]?.target).toBe('a')
})

const file = (path: string, text: string, more: Partial<TarEntry> = {}): readonly Uint8Array[] => {
  const bytes = new TextEncoder().encode(text)
  const entry = { path, kind: 'file', mode: 0o640, mtimeNs: '1700000000123456789', ...more } as const
  return [
    writeEntry({ ...entry, kind: 'file', sizeBytes: bytes.length }),
    bytes,
    new Uint8Array(paddingOf(bytes.length)),
  ]
}

test('GNU tar unpacks a written archive and ignores its notes', () => {
  const at = { mode: 0o755, mtimeNs: '1600000000000000000', sizeBytes: 0 } as const
  const archive = Buffer.concat([
    writeEntry({ path: 'empty', kind: 'folder', ...at, mode: 0o700 }),
    ...file(LONG, 'deep'),
    ...file(INVALID, 'bytes'),
    ...file(ODD, 'odd', { mtimeNs: '1000000000' }),
    writeNote({ code: 'special_file', path: 'a pipe\n' }),
    ...file(`${'p/'.repeat(70)}${'q'.repeat(90)}`, 'prefix'),
    writeEntry({ path: 'to-long', kind: 'link', ...at, target: LONG }),
    writeEntry({ path: 'other', kind: 'hard-link', ...at, target: ODD }),
    TAR_END,
  ])
  const base = join(folder, 'to-gnu')
  mkdirSync(base)
  tar(['-x', '-p', '-C', base, '-f', '-'], archive)
  expect(readFileSync(join(base, LONG), 'utf8')).toBe('deep')
  expect(readFileSync(bytesPath(base, INVALID), 'utf8')).toBe('bytes')
  expect(readFileSync(join(base, `${'p/'.repeat(70)}${'q'.repeat(90)}`), 'utf8')).toBe('prefix')
  expect(lstatSync(join(base, LONG), { bigint: true }).mtimeNs).toBe(1_700_000_000_123_456_789n)
  expect(lstatSync(join(base, LONG)).mode & 0o7777).toBe(0o640)
  expect(lstatSync(join(base, ODD), { bigint: true }).mtimeNs).toBe(1_000_000_000n)
  expect(lstatSync(join(base, 'empty')).mode & 0o7777).toBe(0o700)
  expect(lstatSync(join(base, 'other')).ino).toBe(lstatSync(join(base, ODD)).ino)
  expect(readlinkSync(join(base, 'to-long'))).toBe(LONG)
  expect(readdirSync(base).length).toBe(7)
})

test('writes a size over 8 GiB in an extended header, which GNU tar reads', () => {
  const sizeBytes = 9 * 1024 ** 4
  const header = writeEntry({ path: 'big', kind: 'file', mode: 0o644, mtimeNs: '0', sizeBytes })
  const [event] = [...new TarReader().push(header)]
  expect(event).toMatchObject({ kind: 'entry', entry: { path: 'big', sizeBytes } })
  const listed = Bun.spawnSync(['tar', '-tv'], { stdin: header, env: { ...process.env, LC_ALL: 'C' } })
  expect(listed.stdout.toString()).toContain(String(sizeBytes))
})
