import { expect, test } from 'bun:test'
import { Random } from '@sandwire/testing'
import { SandwireError } from '@sandwire/protocol'
import { BLOCK_BYTES, paddingOf, type TarEntry } from './entry.ts'
import { writeHeader } from './header-block.ts'
import { MAX_EXTENDED_BYTES, type TarEvent, TarReader } from './tar-reader.ts'
import { TAR_END, writeEntry, writeNote } from './pieces.fixture.ts'

const at = { mode: 0o644, mtimeNs: '1700000000000000000' } as const

function pack(path: string, bytes: Uint8Array): Uint8Array {
  const header = writeEntry({ path, kind: 'file', sizeBytes: bytes.length, ...at })
  return Buffer.concat([header, bytes, new Uint8Array(paddingOf(bytes.length))])
}

function readAll(archive: Uint8Array): readonly TarEvent[] {
  const reader = new TarReader()
  const events = [...reader.push(archive)]
  reader.end()
  return events
}

/** A header of any kind, with its checksum. */
function header(type: string, sizeBytes: number, name = 'a'): Uint8Array {
  const text = new TextEncoder().encode(name)
  const block = new Uint8Array(BLOCK_BYTES)
  writeHeader(block, { name: text, mode: 0o644, sizeBytes, mtimeSeconds: 0, type, target: new Uint8Array(0) })
  return block
}

/** An extended header with this body. */
function extended(type: string, body: string): Uint8Array {
  const bytes = new TextEncoder().encode(body)
  return Buffer.concat([header(type, bytes.length), bytes, new Uint8Array(paddingOf(bytes.length))])
}

test('an entry is encoded in golden bytes', () => {
  const block = writeEntry({ path: 'a/b', kind: 'file', sizeBytes: 3, mode: 0o755, mtimeNs: '1000000000' })
  const text = Buffer.from(block).toString('latin1')
  expect(block.length).toBe(BLOCK_BYTES)
  expect(text.slice(0, 4)).toBe('a/b\0')
  expect(text.slice(100, 157)).toBe(
    '0000755\x000000000\x000000000\x0000000000003\x0000000000001\x00006326\x00 0',
  )
  expect(text.slice(257, 265)).toBe('ustar\x0000')
})

test('returns content as views of the pushed bytes, without buffering', () => {
  const archive = Buffer.concat([pack('a', new Uint8Array(1000).fill(7)), TAR_END])
  const reader = new TarReader()
  const sizes: number[] = []
  for (let from = 0; from < archive.length; from += 300)
    for (const event of reader.push(archive.subarray(from, from + 300)))
      if (event.kind === 'bytes') sizes.push(event.bytes.length)
  expect(sizes).toEqual([88, 300, 300, 300, 12])
})

test('reports notes between entries, and ignores other comments', () => {
  const events = readAll(
    Buffer.concat([
      extended('g', '19 comment=by others\n'.replace('19', '21')),
      writeNote({ code: 'special_file', path: 'odd \udcff\n' }),
      pack('a', new Uint8Array(0)),
      TAR_END,
    ]),
  )
  expect(events.map(({ kind }) => kind)).toEqual(['note', 'entry', 'complete', 'end'])
  expect(events[0]).toEqual({ kind: 'note', note: { code: 'special_file', path: 'odd \udcff\n' } })
})

const MALFORMED: readonly (readonly [string, Uint8Array])[] = [
  ['a changed checksum', pack('a', new Uint8Array(0)).map((byte, index) => (index === 0 ? byte ^ 1 : byte))],
  ['a size that is no number', changed(header('0', 0), 124, 'x')],
  ['a negative size', changed(header('0', 0), 124, '\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff')],
  [
    'a size that no number holds',
    changed(header('0', 0), 124, '\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff'),
  ],
  ['an extended header over its bound', extended('x', `70000 comment=${'c'.repeat(69_985)}\n`)],
  ['a long name over its bound', extended('L', 'n'.repeat(MAX_EXTENDED_BYTES + 1))],
  ['records without a length', extended('x', 'path=a\n')],
  ['a record longer than all', extended('x', '99 path=a\n')],
  ['a record that ends elsewhere', extended('x', '9 path=ab')],
  ['a size of words', extended('x', '12 size=one\n')],
  ['a sparse file of GNU', header('S', 512)],
  ['a sparse file by records', extended('x', '22 GNU.sparse.major=1\n')],
  ['extended headers without end', Buffer.concat(Array.from({ length: 20 }, () => extended('L', 'a\0')))],
]

/** A header with changed bytes and a matching checksum. */
function changed(block: Uint8Array, offset: number, text: string): Uint8Array {
  const copy = block.slice()
  copy.set(Buffer.from(text, 'latin1'), offset)
  copy.fill(0x20, 148, 156)
  const sum = copy.reduce((total, byte) => total + byte, 0)
  copy.set(new TextEncoder().encode(`${sum.toString(8).padStart(6, '0')}\0 `), 148)
  return copy
}

test.each([...MALFORMED])('refuses an archive with %s (threat T17)', (_, archive) => {
  // The rest of the archive is valid.
  const rest = Buffer.concat([pack('b', new Uint8Array(0)), TAR_END])
  expect(() => readAll(Buffer.concat([archive, rest]))).toThrow('Cannot read the archive')
})

const CUT: readonly (readonly [string, Uint8Array])[] = [
  ['a file that is cut', pack('a', new Uint8Array(2000)).subarray(0, 1000)],
  ['nothing at the end', pack('a', new Uint8Array(10))],
  ['nothing at all', new Uint8Array(0)],
]

test.each([...CUT])('reports an archive with %s as incomplete', (_, archive) => {
  expect(() => readAll(archive)).toThrow('Cannot read the archive: it ends too early')
})

test('reads or refuses mutated archives, and returns no more bytes than they contain (threat T17)', () => {
  const entries: TarEntry[] = [
    { path: 'l'.repeat(300), kind: 'file', sizeBytes: 700, ...at },
    { path: 'd', kind: 'folder', sizeBytes: 0, ...at },
    { path: 'd/l', kind: 'link', sizeBytes: 0, ...at, target: 't'.repeat(200) },
  ]
  const whole = Buffer.concat([
    ...entries.map((entry) =>
      Buffer.concat([
        entry.kind === 'special' ? new Uint8Array(0) : writeEntry({ ...entry, kind: entry.kind }),
        new Uint8Array(entry.sizeBytes + paddingOf(entry.sizeBytes)),
      ]),
    ),
    writeNote({ code: 'left', path: 'x' }),
    TAR_END,
  ])
  for (let seed = 0; seed < 3_000; seed += 1) {
    const random = new Random(seed)
    const mutated = Uint8Array.from(whole)
    for (let count = 1 + Math.floor(random.next() * 4); count > 0; count -= 1)
      mutated[Math.floor(random.next() * mutated.length)] = Math.floor(random.next() * 256)
    const slice = mutated.subarray(0, Math.floor(random.next() * (mutated.length + 1)))
    // Half of them have valid checksums, so that the code after the checksum runs.
    if (seed % 2 === 0) mendChecksums(slice)
    let bytes = 0
    try {
      const reader = new TarReader()
      for (const event of reader.push(slice)) if (event.kind === 'bytes') bytes += event.bytes.length
      reader.end()
    } catch (error) {
      if (!(error instanceof SandwireError) || error.code !== 'bad_request')
        throw new Error(`Seed ${seed} throws something else`, { cause: error })
    }
    expect(bytes).toBeLessThanOrEqual(slice.length)
  }
})

function mendChecksums(archive: Uint8Array): void {
  for (let from = 0; from + BLOCK_BYTES <= archive.length; from += BLOCK_BYTES) {
    const block = archive.subarray(from, from + BLOCK_BYTES)
    if (Buffer.from(block.subarray(257, 262)).toString() === 'ustar') block.set(changed(block, 0, ''))
  }
}
