import { describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  chmodSync,
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { readXattrs, setXattr } from './system-calls.ts'
import { describeTree, VersionFixture } from './versions.fixture.ts'

function withFile<Result>(path: string, use: (fd: number) => Result): Result {
  const fd = openSync(path, 'r')
  try {
    return use(fd)
  } finally {
    closeSync(fd)
  }
}

/** One of everything that a file system can hold. */
function fill(folder: string): void {
  mkdirSync(join(folder, 'src/deep/er'), { recursive: true })
  mkdirSync(join(folder, 'empty'))
  writeFileSync(join(folder, 'a.txt'), 'hello')
  writeFileSync(join(folder, 'nothing'), '')
  writeFileSync(join(folder, 'src/run'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(join(folder, 'src/large'), crypto.getRandomValues(new Uint8Array(60_000)))
  const large = Buffer.alloc(3 * 1024 * 1024 + 17, 'large file ')
  writeFileSync(join(folder, 'src/deep/er/blocks'), large)
  symlinkSync('../outside/ünknown', join(folder, 'link'))
  symlinkSync('/usr/bin/env', join(folder, 'absolute'))
  linkSync(join(folder, 'a.txt'), join(folder, 'src/same'))
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe, 0x0a, 0x22])]), 'bytes')
  writeFileSync(join(folder, 'n'.repeat(255)), 'long name')
  writeFileSync(join(folder, 'old'), 'before 1970')
  utimesSync(join(folder, 'old'), -1000.5, -1000.5)
  chmodSync(join(folder, 'empty'), 0o1777)
  writeFileSync(join(folder, 'sticky'), '', { mode: 0o600 })
  chmodSync(join(folder, 'sticky'), 0o4711)
  Bun.spawnSync(['mkfifo', join(folder, 'pipe')])
  for (const name of ['a.txt', 'src/deep'])
    withFile(join(folder, name), (fd) => setXattr(fd, Buffer.from('user.note'), Buffer.from('kept')))
  writeFileSync(join(folder, 'holes'), '')
  truncateSync(join(folder, 'holes'), 5 * 1024 * 1024)
  Bun.spawnSync([
    'dd',
    'if=/dev/urandom',
    `of=${folder}/holes`,
    'bs=4096',
    'count=1',
    'seek=700',
    'conv=notrunc',
  ])
  writeFileSync(join(folder, 'closed'), 'no one may read this')
  chmodSync(join(folder, 'closed'), 0)
}

describe('a version', () => {
  test('restores every kind of entry with its mode, times, links and holes', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    writeFileSync(join(fixture.home, '.profile'), 'export A=1')
    fixture.save()
    const restored = fixture.restore()
    expect(describeTree(join(restored, 'workspace'))).toBe(describeTree(fixture.workspace))
    expect(describeTree(join(restored, 'home'))).toBe(describeTree(fixture.home))
    const holes = statSync(join(restored, 'workspace/holes'))
    expect(holes.blocks * 512).toBeLessThan(64 * 1024)
    for (const name of ['a.txt', 'src/deep']) {
      const [note] = withFile(join(restored, 'workspace', name), readXattrs)
      expect(Buffer.from(note?.value ?? []).toString()).toBe('kept')
    }
    const same = statSync(join(restored, 'workspace/src/same'))
    expect(same.ino).toBe(statSync(join(restored, 'workspace/a.txt')).ino)
  })

  test.each([0o000, 0o022, 0o077])('restores modes whatever the umask is: %o', (umask) => {
    using fixture = new VersionFixture()
    for (const mode of [0o400, 0o444, 0o600, 0o644, 0o666, 0o755, 0o777, 0o4755, 0o2775])
      for (const [name, bytes] of [
        ['small', 10],
        ['large', 2_500_000],
        ['empty', 0],
      ] as const) {
        const path = join(fixture.workspace, `${name}-${mode.toString(8)}`)
        writeFileSync(path, Buffer.alloc(bytes, name))
        chmodSync(path, mode)
      }
    fixture.save()
    const before = process.umask(umask)
    let restored
    try {
      restored = fixture.restore()
    } finally {
      process.umask(before)
    }
    expect(describeTree(join(restored, 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('has only the changed folder, in one small segment', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    fixture.save()
    const before = fixture.store.size
    writeFileSync(join(fixture.workspace, 'src/deep/er/new'), 'x'.repeat(300))
    const { made, change } = fixture.save()
    expect(made).toBe(1)
    expect(change.folders.map(({ listing }) => listing.path)).toEqual([
      'workspace/src/deep',
      'workspace/src/deep/er',
    ])
    const [added] = [...fixture.store.values()].slice(before)
    expect(added?.bytes.byteLength).toBeLessThan(2000)
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('is not made when nothing changed', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    fixture.save()
    expect(fixture.save().made).toBe(0)
    chmodSync(join(fixture.workspace, 'a.txt'), 0o600)
    chmodSync(join(fixture.workspace, 'a.txt'), 0o644)
    expect(fixture.save().made).toBe(0)
  })

  test('follows removals, renames, and files that become folders', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    fixture.save()
    const at = (path: string): string => join(fixture.workspace, path)
    renameSync(at('src'), at('moved'))
    rmSync(at('a.txt'))
    mkdirSync(at('a.txt/inside'), { recursive: true })
    rmSync(at('empty'), { recursive: true })
    writeFileSync(at('empty'), 'a file now')
    fixture.save()
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
    rmSync(at('moved'), { recursive: true })
    symlinkSync('elsewhere', at('moved'))
    fixture.save()
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('stores equal content once, and one changed block of a large file alone', () => {
    using fixture = new VersionFixture()
    const content = crypto.getRandomValues(new Uint8Array(4 * 1024 * 1024 + 5).subarray(0, 65_536))
    const large = Buffer.concat(
      Array.from({ length: 65 }, (_, at) => Buffer.concat([content, Buffer.from([at])])),
    )
    writeFileSync(join(fixture.workspace, 'large'), large)
    writeFileSync(join(fixture.workspace, 'copy'), large)
    fixture.save()
    const stored = [...fixture.store.values()].reduce((sum, { bytes }) => sum + bytes.byteLength, 0)
    expect(stored).toBeLessThan(large.byteLength * 1.1)
    large[2_000_000] = (large[2_000_000] ?? 0) ^ 1
    writeFileSync(join(fixture.workspace, 'large'), large)
    fixture.save()
    const again = [...fixture.store.values()].at(-1)?.bytes.byteLength ?? 0
    expect(again).toBeLessThan(1.1 * 1024 * 1024)
    expect(readFileSync(join(fixture.restore(), 'workspace/large')).equals(large)).toBe(true)
  })

  test('that lists every folder again is restored with content of earlier versions', () => {
    using fixture = new VersionFixture()
    writeFileSync(join(fixture.workspace, 'changed'), 'one')
    writeFileSync(join(fixture.workspace, 'kept'), 'kept')
    fixture.save()
    writeFileSync(join(fixture.workspace, 'changed'), 'two')
    fixture.save({ isBase: true })
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('is not restored when a bit of its manifest has changed', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    fixture.save()
    const [id = ''] = fixture.head?.manifests ?? []
    const segment = fixture.store.get(id)
    if (segment === undefined) throw new Error('Nothing was saved')
    const { bytes, trailerBytes } = segment
    const target = fixture.restore()
    const before = describeTree(target)
    for (let at = bytes.byteLength - trailerBytes; at < bytes.byteLength; at += 1) {
      const changed = Uint8Array.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 0x01
      fixture.store.set(id, { bytes: changed, trailerBytes })
      expect(() => fixture.restore(fixture.head, { target })).toThrow('Cannot read the version')
    }
    expect(describeTree(target)).toBe(before)
  })

  test('that control did not commit is made again', () => {
    using fixture = new VersionFixture()
    fixture.save()
    writeFileSync(join(fixture.workspace, 'a'), 'kept')
    expect(fixture.save({ commits: false }).made).toBe(1)
    expect(fixture.save().made).toBe(1)
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('reads a file again whose mapped memory may have changed without a new time', () => {
    using fixture = new VersionFixture()
    const path = join(fixture.workspace, 'mapped')
    writeFileSync(path, 'one')
    const memory = Bun.mmap(path, { shared: true })
    memory[0] = 0x31
    const { ctimeNs } = statSync(path, { bigint: true })
    // The page is dirty: it was not synced after the store.
    fixture.save({ syncedMs: Date.now() - 1_000 })
    memory[0] = 0x32
    expect(statSync(path, { bigint: true }).ctimeNs).toBe(ctimeNs)
    expect(fixture.save().made).toBe(1)
    expect(readFileSync(join(fixture.restore(), 'workspace/mapped'), 'utf8')).toBe('2ne')
  })

  test('has the time of the content when a file changes between being found and read', () => {
    using fixture = new VersionFixture()
    const path = join(fixture.workspace, 'file')
    writeFileSync(path, 'old')
    utimesSync(path, 1_000, 1_000)
    // Asked for every name that was found, before any is read.
    const change = (name: string): boolean => {
      if (name !== 'file') return false
      writeFileSync(path, 'new')
      utimesSync(path, 2_000, 2_000)
      return false
    }
    fixture.save({ isPaused: () => false, excludesOf: () => change })
    const restored = join(fixture.restore(), 'workspace/file')
    expect([readFileSync(restored, 'utf8'), statSync(restored).mtimeMs]).toEqual(['new', 2_000_000])
  })

  test('has the new content under every name of a file when a hint names one of their folders', () => {
    using fixture = new VersionFixture()
    const at = (path: string): string => join(fixture.workspace, path)
    mkdirSync(at('a'))
    mkdirSync(at('b'))
    writeFileSync(at('a/name'), 'before')
    linkSync(at('a/name'), at('b/name'))
    fixture.save()
    writeFileSync(at('b/name'), 'after')
    fixture.save({ hints: ['workspace', 'workspace/b'] })
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
    expect(readFileSync(join(fixture.restore(), 'workspace/a/name'), 'utf8')).toBe('after')
  })

  test('stores a file of holes without reading them, and keeps what it had of one that is too large', () => {
    using fixture = new VersionFixture()
    const path = join(fixture.workspace, 'disk.img')
    writeFileSync(path, 'start')
    truncateSync(path, 200 * 1024 ** 3)
    fixture.save()
    const restored = statSync(join(fixture.restore(), 'workspace/disk.img'))
    expect([restored.size, restored.blocks]).toEqual([200 * 1024 ** 3, 8])
    truncateSync(path, 2 * 1024 ** 4)
    writeFileSync(join(fixture.workspace, 'other'), 'other')
    expect(fixture.save()).toMatchObject({ made: 1, unreadable: ['workspace/disk.img'] })
    expect(statSync(join(fixture.restore(), 'workspace/disk.img')).size).toBe(200 * 1024 ** 3)
    // It is read again as soon as it can be.
    truncateSync(path, 5)
    expect(fixture.save()).toMatchObject({ made: 1, unreadableCount: 0 })
    expect(readFileSync(join(fixture.restore(), 'workspace/disk.img'), 'utf8')).toBe('start')
  })

  test('scans only hinted folders and new ones below them', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    fixture.save()
    mkdirSync(join(fixture.workspace, 'src/new/inner'), { recursive: true })
    writeFileSync(join(fixture.workspace, 'src/new/inner/file'), 'new')
    writeFileSync(join(fixture.workspace, 'src/deep/unseen'), 'not hinted')
    const { change } = fixture.save({ hints: ['workspace', 'workspace/src'] })
    expect(change.folders.map(({ listing }) => listing.path)).toEqual([
      'workspace',
      'workspace/src',
      'workspace/src/new',
      'workspace/src/new/inner',
    ])
    fixture.save()
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('restores one root and leaves the other as it is', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    writeFileSync(join(fixture.home, '.profile'), 'export A=1')
    // A file with a name in both roots is restored with those of one.
    linkSync(join(fixture.workspace, 'a.txt'), join(fixture.home, 'linked'))
    fixture.save()
    const first = fixture.head
    const workspace = describeTree(fixture.workspace).replaceAll(
      /(a\.txt|src\/same)(\0f \d+ \d+ \S+) 3/g,
      '$1$2 2',
    )
    writeFileSync(join(fixture.workspace, 'later'), 'later')
    writeFileSync(join(fixture.home, '.profile'), 'export A=2')
    rmSync(join(fixture.home, 'linked'))
    fixture.save()
    const target = fixture.restore()
    writeFileSync(join(target, 'home/.profile'), 'export A=3')
    const home = describeTree(join(target, 'home'))
    fixture.restore(first, { only: 'workspace', target })
    expect(describeTree(join(target, 'workspace'))).toBe(workspace)
    expect(describeTree(join(target, 'home'))).toBe(home)
  })

  test('stores content again whose segments are replaced, and needs them no more', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    fixture.save()
    writeFileSync(join(fixture.workspace, 'later'), 'later')
    fixture.save()
    const old = new Set(fixture.head?.segments)
    const { segments } = fixture.save({ isBase: true, replaced: old })
    expect(segments.filter((id) => old.has(id))).toEqual([])
    for (const id of old) fixture.store.delete(id)
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('that lists every folder finds segments of which less than half is needed', () => {
    using fixture = new VersionFixture()
    const random = (bytes: number): Buffer => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes)))
    for (const name of ['a', 'b', 'c']) writeFileSync(join(fixture.workspace, name), random(60_000))
    // Names the content of `a` twice: it is stored and needed once.
    copyFileSync(join(fixture.workspace, 'a'), join(fixture.workspace, 'copy'))
    const [first] = fixture.save().segments
    if (first === undefined) throw new Error('nothing was saved')
    rmSync(join(fixture.workspace, 'b'))
    expect(fixture.save({ isBase: true }).sparse).toEqual([])
    writeFileSync(join(fixture.workspace, 'c'), random(60_000))
    expect(fixture.save().sparse).toEqual([])
    expect(fixture.save({ isBase: true }).sparse).toEqual([first])
    const { segments, sparse } = fixture.save({ isBase: true, replaced: new Set([first]) })
    expect([segments.includes(first), sparse]).toEqual([false, []])
    fixture.store.delete(first)
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('is made with its record when nothing changed and it is to be recorded', () => {
    using fixture = new VersionFixture()
    fill(fixture.workspace)
    fixture.save()
    const before = fixture.store.size
    expect(fixture.save({ isRecorded: true }).made).toBe(1)
    expect(fixture.store.size).toBe(before + 1)
    expect(describeTree(join(fixture.restore(), 'workspace'))).toBe(describeTree(fixture.workspace))
  })

  test('leaves out what is excluded', () => {
    using fixture = new VersionFixture()
    mkdirSync(join(fixture.home, '.cache/deep'), { recursive: true })
    writeFileSync(join(fixture.home, '.cache/deep/x'), 'x')
    writeFileSync(join(fixture.home, 'kept'), 'x')
    fixture.save({ excludesOf: (folder) => (folder === 'home' ? (name) => name === '.cache' : undefined) })
    const restored = describeTree(join(fixture.restore(), 'home'))
    expect(restored).toContain('kept')
    expect(restored).not.toContain('cache')
  })
})
