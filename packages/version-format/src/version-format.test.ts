import { describe, expect, test } from 'bun:test'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { SandwireError } from '@sandwire/protocol'
import fc from 'fast-check'
import {
  blockCount,
  buildTree,
  ByteWriter,
  type Compression,
  compareBytes,
  decodeManifest,
  encodeManifest,
  isSafeName,
  latin1Bytes,
  type ManifestEntry,
  type ManifestPart,
  readFrame,
  readTrailer,
  SegmentBuilder,
  trailerSize,
} from './index.ts'

const compression: Compression = {
  compress: (bytes) => zstdCompressSync(bytes),
  compressChecked: (bytes) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }),
  decompress: (bytes, sizeBytes) => zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, sizeBytes) }),
}

const id = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => bytes.toHex())
const name = fc.uint8Array({ minLength: 1, maxLength: 255 }).filter(isSafeName)
const attributes = {
  name,
  mode: fc.integer({ min: 0, max: 0o7777 }),
  seconds: fc.integer({ min: -(2 ** 40), max: 2 ** 40 }),
  nanos: fc.integer({ min: 0, max: 999_999_999 }),
  xattrs: fc.array(
    fc.record({
      name: fc.constant(Uint8Array.from(Buffer.from('user.a'))),
      value: fc.uint8Array({ maxLength: 20 }),
    }),
    { maxLength: 2 },
  ),
}
const ref = fc.option(fc.record({ segment: id, chunk: fc.nat(65_535) }), { nil: undefined })
const file = fc
  .record({ ...attributes, sizeBytes: fc.nat(5 * 1024 * 1024), isSparse: fc.boolean(), linkGroup: fc.nat() })
  .chain((entry) =>
    fc
      .array(ref, { minLength: blockCount(entry.sizeBytes), maxLength: blockCount(entry.sizeBytes) })
      .map((blocks): ManifestEntry => ({ kind: 'file', ...entry, blocks })),
  )
const entry: fc.Arbitrary<ManifestEntry> = fc.oneof(
  file,
  fc.record({ ...attributes, kind: fc.constant('fifo' as const) }),
  fc.record({ ...attributes, kind: fc.constant('folder' as const) }),
  fc.record({
    ...attributes,
    kind: fc.constant('link' as const),
    target: fc.uint8Array({ minLength: 1, maxLength: 50 }).filter((bytes) => !bytes.includes(0)),
  }),
)
const entries = fc
  .uniqueArray(entry, { selector: (each) => each.name.toHex(), maxLength: 8 })
  .map((list) => list.toSorted((a, b) => compareBytes(a.name, b.name)))
const part: fc.Arbitrary<ManifestPart> = fc.record({
  isBase: fc.boolean(),
  scannedMs: fc.nat(),
  removed: fc.array(
    name.map((bytes) => Buffer.from(bytes).toString('latin1')),
    { maxLength: 3 },
  ),
  folders: fc.array(
    fc.record({ path: name.map((bytes) => `a/${Buffer.from(bytes).toString('latin1')}`), entries }),
    { maxLength: 4 },
  ),
})

/** A plain copy, so that a view and an array compare equal. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_key, each: unknown) =>
      each instanceof Uint8Array || Buffer.isBuffer(each) ? Buffer.from(each).toString('hex') : each,
    ),
  )
}

function codeOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return error instanceof SandwireError ? error.code : String(error)
  }
  return 'none'
}

describe('a manifest', () => {
  test('is decoded as it was encoded', () => {
    fc.assert(
      fc.property(part, (each) => {
        expect(plain(decodeManifest(encodeManifest(each)))).toEqual(plain(each))
      }),
    )
  })

  test('of other bytes is refused as damaged, and never otherwise', () => {
    fc.assert(
      fc.property(part, fc.nat(), fc.integer({ min: 1, max: 255 }), (each, at, flip) => {
        const bytes = encodeManifest(each)
        bytes[at % bytes.byteLength] = (bytes[at % bytes.byteLength] ?? 0) ^ flip
        expect(['none', 'version_damaged']).toContain(codeOf(() => decodeManifest(bytes)))
        expect(codeOf(() => decodeManifest(bytes.subarray(0, at % bytes.byteLength)))).toBe('version_damaged')
      }),
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(['none', 'version_damaged']).toContain(codeOf(() => decodeManifest(bytes)))
      }),
    )
  })

  test.each(['..', '.', '', 'a/b', 'a\0b', 'x'.repeat(256)])('with the name %j is refused', (text) => {
    const bad: ManifestEntry = {
      kind: 'folder',
      name: latin1Bytes(text),
      mode: 0,
      seconds: 0,
      nanos: 0,
      xattrs: [],
    }
    const bytes = encodeManifest({
      isBase: true,
      scannedMs: 0,
      removed: [],
      folders: [{ path: '', entries: [bad] }],
    })
    expect(codeOf(() => decodeManifest(bytes))).toBe('version_damaged')
  })

  test.each(['../x', '/x', 'x/', 'a//b', 'a/./b', 'a\0'])('with the path %j is refused', (path) => {
    const bytes = encodeManifest({
      isBase: true,
      scannedMs: 0,
      removed: [],
      folders: [{ path, entries: [] }],
    })
    expect(codeOf(() => decodeManifest(bytes))).toBe('version_damaged')
    const removing = encodeManifest({ isBase: false, scannedMs: 0, removed: [path], folders: [] })
    expect(codeOf(() => decodeManifest(removing))).toBe('version_damaged')
  })

  test('with a false count is refused before memory is allocated', () => {
    const writer = new ByteWriter()
    writer.byte(1)
    writer.number(2 ** 40)
    expect(codeOf(() => decodeManifest(writer.take()))).toBe('version_damaged')
  })
})

describe('a tree', () => {
  const folder = (text: string): ManifestEntry => ({
    kind: 'folder',
    name: latin1Bytes(text),
    mode: 0o755,
    seconds: 0,
    nanos: 0,
    xattrs: [],
  })
  const base: ManifestPart = {
    isBase: true,
    scannedMs: 0,
    removed: [],
    folders: [
      { path: '', entries: [folder('workspace')] },
      { path: 'workspace', entries: [folder('a')] },
      { path: 'workspace/a', entries: [folder('b')] },
      { path: 'workspace/a/b', entries: [] },
    ],
  }

  test('is the base with the changes applied in order', () => {
    const later: ManifestPart = {
      isBase: false,
      scannedMs: 0,
      removed: ['workspace/a'],
      folders: [
        { path: 'workspace', entries: [folder('c')] },
        { path: 'workspace/c', entries: [] },
      ],
    }
    expect([...buildTree([base, later]).keys()]).toEqual(['', 'workspace', 'workspace/c'])
  })

  test('is refused when parts are missing', () => {
    const orphan = {
      isBase: false,
      scannedMs: 0,
      removed: [],
      folders: [{ path: 'workspace/x', entries: [] }],
    }
    const hollow = {
      isBase: false,
      scannedMs: 0,
      removed: [],
      folders: [{ path: 'workspace', entries: [folder('x')] }],
    }
    for (const parts of [[], [orphan], [base, orphan], [base, hollow]])
      expect(codeOf(() => buildTree(parts))).toBe('version_damaged')
  })
})

describe('a segment', () => {
  const hash = (byte: number): Uint8Array => new Uint8Array(16).fill(byte)

  function build(): Uint8Array {
    const builder = new SegmentBuilder(compression)
    builder.add(Buffer.from('first'), hash(1))
    builder.add(Buffer.alloc(900_000, 'x'), hash(2))
    builder.add(Buffer.alloc(1024 * 1024, 'y'), hash(3))
    return builder.finish({ manifest: Buffer.from('manifest'), record: Buffer.from('record') }).bytes
  }

  test('is read from its end', () => {
    const bytes = build()
    const end = bytes.subarray(bytes.byteLength - trailerSize(bytes.subarray(-16)))
    const trailer = readTrailer(end, bytes.byteLength, compression)
    expect(trailer.chunks.map(({ frame, start, sizeBytes }) => [frame, start, sizeBytes])).toEqual([
      [0, 0, 5],
      [0, 5, 900_000],
      [1, 0, 1024 * 1024],
    ])
    expect(Buffer.from(trailer.manifest ?? []).toString()).toBe('manifest')
    expect(Buffer.from(trailer.record ?? []).toString()).toBe('record')
    const [first] = trailer.frames
    if (first === undefined) throw new Error('no frame')
    const raw = readFrame(first, bytes.subarray(first.start, first.start + first.sizeBytes), compression)
    expect(Buffer.from(raw.subarray(0, 5)).toString()).toBe('first')
  })

  test('with a changed bit in its end is refused as damaged, and never otherwise', () => {
    const bytes = build()
    const size = trailerSize(bytes.subarray(-16))
    for (let at = bytes.byteLength - size; at < bytes.byteLength; at += 1)
      for (const bit of [0x01, 0x40]) {
        const changed = Uint8Array.from(bytes)
        changed[at] = (changed[at] ?? 0) ^ bit
        expect(codeOf(() => readTrailer(changed, changed.byteLength, compression))).toBe('version_damaged')
      }
    for (const length of [0, 8, 15, 40])
      expect(codeOf(() => readTrailer(bytes.subarray(0, length), length, compression))).toBe(
        'version_damaged',
      )
  })

  test('that unpacks to more than it states is refused', () => {
    const bytes = build()
    const [frame] = readTrailer(bytes, bytes.byteLength, compression).frames
    if (frame === undefined) throw new Error('no frame')
    const compressed = bytes.subarray(frame.start, frame.start + frame.sizeBytes)
    expect(codeOf(() => readFrame({ ...frame, rawBytes: 100 }, compressed, compression))).toBe(
      'version_damaged',
    )
    expect(codeOf(() => readFrame({ ...frame, rawBytes: frame.rawBytes + 1 }, compressed, compression))).toBe(
      'version_damaged',
    )
  })
})
