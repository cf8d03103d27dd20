import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import {
  type Compression,
  encodeManifest,
  HASH_BYTES,
  type ManifestEntry,
  SegmentBuilder,
} from '@sandwire/version-format'
import { findVersions } from '../src/versions/rebuild-versions.ts'
import { VERSION_SCHEMA } from '../src/versions/version-schema.ts'
import { VersionStore } from '../src/versions/version-store.ts'
import { sqlOf } from './support/bun-sql.ts'
import { MemoryStore } from './support/memory-store.ts'

const COMPRESSION: Compression = {
  compress: (bytes) => zstdCompressSync(bytes),
  compressChecked: (bytes) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }),
  decompress: (bytes, sizeBytes) => zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, sizeBytes) }),
}
const ATTRIBUTES = { mode: 0o644, seconds: 1, nanos: 0, xattrs: [] }

function entryOf(name: string, segment: string): ManifestEntry {
  const blocks = [{ segment, chunk: 0 }]
  return {
    kind: 'file',
    name: Buffer.from(name),
    ...ATTRIBUTES,
    sizeBytes: name.length,
    isSparse: false,
    linkGroup: 0,
    blocks,
  }
}

interface Saved {
  readonly save: string
  readonly parent?: string
  readonly sandbox?: string
  /** Key of the segment in the store; by default that of the sandbox. */
  readonly lineage?: string
  readonly savedMs: number
  readonly name?: string
  /** Files with the segments that have their content; absent: no base. */
  readonly files: Readonly<Record<string, string>>
  readonly isBase: boolean
}

function idOf(save: string): string {
  return `${save.padStart(28, '0')}0000`
}

/** Stores a version of one segment, as sandboxd makes it. */
async function store(target: MemoryStore, saved: Saved): Promise<void> {
  const { save, parent, sandbox = 'box', lineage = sandbox, savedMs, name, files, isBase } = saved
  const builder = new SegmentBuilder(COMPRESSION)
  builder.add(Buffer.from(save), Buffer.alloc(HASH_BYTES))
  const entries = Object.entries(files).map(([file, segment]) => entryOf(file, idOf(segment)))
  const manifest = encodeManifest({
    isBase,
    scannedMs: 0,
    removed: [],
    folders: [{ path: '', entries: entries.toSorted((a, b) => Buffer.compare(a.name, b.name)) }],
  })
  const record = {
    sandbox,
    save: save.padStart(28, '0'),
    parent: parent === undefined ? null : parent.padStart(28, '0'),
    kind: name === undefined ? 'automatic' : 'checkpoint',
    name: name ?? null,
    savedMs,
  }
  const { bytes } = builder.finish({ manifest, record: Buffer.from(JSON.stringify(record)) })
  await target.put(`segments/${lineage}/${idOf(save)}`, bytes)
}

function openRows(): VersionStore {
  const sql = sqlOf(new Database(':memory:'))
  for (const statement of VERSION_SCHEMA) sql.exec(statement)
  return new VersionStore((query, ...bindings) => sql.exec(query, ...bindings).toArray())
}

function find(target: MemoryStore, lineages: readonly string[] = []) {
  return findVersions(target, COMPRESSION, { sandbox: 'box', lineages, pause: async () => undefined })
}

describe('the list of versions', () => {
  test('is rebuilt with a pause before each version, so that control can do other things', async () => {
    const target = new MemoryStore()
    for (const [at, save] of ['a', 'b', 'c'].entries())
      await store(target, { save, savedMs: at, files: { one: 'a' }, isBase: true })
    let pauses = 0
    const pause = async (): Promise<void> => void (pauses += 1)
    await findVersions(target, COMPRESSION, { sandbox: 'box', lineages: [], pause })
    expect(pauses).toBe(3)
  })

  test('is rebuilt from the store: names, order, manifests and segments', async () => {
    const target = new MemoryStore()
    await store(target, { save: 'a', savedMs: 1, files: { one: 'a' }, isBase: true })
    await store(target, {
      save: 'c',
      parent: 'a',
      savedMs: 3,
      files: { one: 'a', two: 'c' },
      isBase: false,
      name: 'kept',
    })
    await store(target, { save: 'b', parent: 'c', savedMs: 5, files: { two: 'c' }, isBase: true })
    const found = await find(target)
    const rows = openRows()
    expect(rows.addFound(found, 0)).toBe(3)
    expect(rows.list()).toMatchObject([
      { number: 3, save: 'b'.padStart(28, '0'), manifests: [idOf('b')], segments: [idOf('c')], createdMs: 5 },
      { number: 2, kind: 'checkpoint', name: 'kept', manifests: [idOf('a'), idOf('c')], isFuzzy: false },
      { number: 1, kind: 'automatic', manifests: [idOf('a')], segments: [idOf('a')], isFuzzy: true },
    ])
    const bytes = target.objects.get(`segments/box/${idOf('a')}`) ?? new Uint8Array()
    expect(rows.segment(idOf('a'))).toMatchObject({
      lineage: 'box',
      sizeBytes: bytes.byteLength,
      sha256: new Bun.CryptoHasher('sha256').update(bytes).digest('hex'),
    })
    // A repeated rebuild adds nothing.
    expect(rows.addFound(await find(target), 0)).toBe(0)
  })

  test('gets only versions that are newer than its newest', async () => {
    const target = new MemoryStore()
    await store(target, { save: 'a', savedMs: 1, files: { one: 'a' }, isBase: true })
    const rows = openRows()
    rows.addFound(await find(target), 0)
    rows.remove(1)
    await store(target, { save: 'b', savedMs: 5, files: { one: 'b' }, isBase: true })
    rows.addFound(await find(target), 0)
    await store(target, { save: 'c', savedMs: 4, files: { one: 'c' }, isBase: true })
    rows.addFound(await find(target), 0)
    expect(rows.list().map(({ createdMs }) => createdMs)).toEqual([5, 1])
  })

  test('leaves out versions of which anything is missing or damaged', async () => {
    const target = new MemoryStore()
    await store(target, { save: 'a', savedMs: 1, files: { one: 'a' }, isBase: true })
    await store(target, { save: 'b', parent: 'ee', savedMs: 2, files: { one: 'a' }, isBase: false })
    await store(target, { save: 'c', parent: 'a', savedMs: 3, files: { one: 'ff' }, isBase: false })
    await store(target, { save: 'd', parent: 'd', savedMs: 4, files: { one: 'a' }, isBase: true })
    await target.put(`segments/box/${idOf('e')}`, Buffer.from('no segment'))
    const damaged = target.objects.get(`segments/box/${idOf('d')}`)
    damaged?.fill(7, damaged.byteLength - 30, damaged.byteLength - 20)
    expect((await find(target)).versions.map(({ createdMs }) => createdMs)).toEqual([1])
  })

  test('ends at a chain of parents without a base that leads back to itself', async () => {
    const target = new MemoryStore()
    await store(target, { save: 'a', parent: 'b', savedMs: 1, files: {}, isBase: false })
    await store(target, { save: 'b', parent: 'a', savedMs: 2, files: {}, isBase: false })
    expect((await find(target)).versions).toEqual([])
  })

  test('never has segments of a sandbox that the list does not know already', async () => {
    const target = new MemoryStore()
    await store(target, { save: 'a', sandbox: 'victim', savedMs: 1, files: { secret: 'a' }, isBase: true })
    // A sandbox makes its own segments, and can claim anything in them.
    await store(target, { save: 'b', parent: 'a', savedMs: 2, files: { secret: 'a' }, isBase: false })
    await store(target, { save: 'c', savedMs: 3, files: { secret: 'a' }, isBase: true })
    expect(await find(target)).toEqual({ versions: [], segments: [] })
    // A fork: control has recorded where its segments come from.
    expect((await find(target, ['victim'])).versions).toHaveLength(2)
  })
})
