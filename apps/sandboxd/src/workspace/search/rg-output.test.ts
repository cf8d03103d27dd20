import { expect, test } from 'bun:test'
import { AFTER_TEXT, decodeRgLine, type FoundLine, type RgLine, RgLines } from './rg-output.ts'

const LIMITS = { maxBytes: 20, keptBytes: 8 }

/** Feeds text in pieces of this size and returns the output. */
function lines(text: string, size: number): unknown[] {
  const reader = new RgLines(LIMITS, '<M>')
  const bytes = Buffer.from(text)
  const found: RgLine[] = []
  for (let at = 0; at < bytes.length; at += size) found.push(...reader.push(bytes.subarray(at, at + size)))
  return found.map((line) =>
    line instanceof Uint8Array
      ? Buffer.from(line).toString()
      : [Buffer.from(line.head).toString(), line.tail && Buffer.from(line.tail).toString()],
  )
}

const LONG = `${'a'.repeat(30)}<M>${'b'.repeat(30)}`

test.each([1, 2, 3, 7, 64, 1_000])('lines are the same in pieces of %d bytes', (size) => {
  expect(lines(`one\n\ntwo\n${LONG}\nlast\nrest`, size)).toEqual([
    'one',
    '',
    'two',
    ['aaaaaaaa', '<M>bbbbb'],
    'last',
  ])
})

test.each([1, 5, 1_000])('a long line without the marker has only a head, in pieces of %d', (size) => {
  expect(lines(`${'x'.repeat(50)}\n<M>\n`, size)).toEqual([['xxxxxxxx', undefined], '<M>'])
})

test.each([1, 5, 1_000])(
  'a marker in the head is not taken for the one after it, in chunks of %d',
  (size) => {
    expect(lines(`<M>${'x'.repeat(40)}<M>7\n`, size)).toEqual([['<M>xxxxx', '<M>7']])
  },
)

test('keeps a line of the maximum length whole', () => {
  expect(lines(`${'x'.repeat(20)}\n${'y'.repeat(21)}\n`, 6)).toEqual([
    'x'.repeat(20),
    ['yyyyyyyy', undefined],
  ])
})

function decode(value: unknown): ReturnType<typeof decodeRgLine> {
  return decodeRgLine(Buffer.from(JSON.stringify(value)))
}

function event(path: object, lines: object, submatches: readonly object[] = []): object {
  return { type: 'match', data: { path, lines, line_number: 7, absolute_offset: 0, submatches } }
}

/** Decodes a truncated event. */
function decodeLong(value: object): FoundLine {
  const lines = new RgLines({ maxBytes: 1_000, keptBytes: 500 }, AFTER_TEXT)
  const [line] = lines.push(Buffer.from(`${JSON.stringify(value)}\n`))
  if (line === undefined || line instanceof Uint8Array) throw new Error('Expected a long line')
  const found = decodeRgLine(line)
  if (found?.kind !== 'match') throw new Error('Expected a match')
  return found
}

test('a match has its path, line and ranges, and no line end', () => {
  const submatches = [{ match: { text: 'b' }, start: 1, end: 2 }]
  expect(decode(event({ text: './x\ny' }, { text: 'abc\r\n' }, submatches))).toEqual({
    kind: 'match',
    path: './x\ny',
    line: 7,
    bytes: Buffer.from('abc'),
    ranges: [[1, 2]],
    isCut: false,
  })
})

test('names and lines that are not UTF-8 keep their bytes', () => {
  const path = { bytes: Buffer.from([0x2e, 0x2f, 0xff]).toString('base64') }
  const found = decode(event(path, { bytes: Buffer.from([0xe9, 0x0a]).toString('base64') }))
  expect(found).toMatchObject({ path: './\udcff', bytes: Buffer.from([0xe9]) })
})

test('decodes the end of a file and of the search, and ignores other events', () => {
  expect(decode({ type: 'end', data: {} })).toEqual({ kind: 'file-end' })
  expect(decode({ type: 'summary', data: {} })).toEqual({ kind: 'summary' })
  expect(decode({ type: 'begin', data: {} })).toBeUndefined()
  for (const text of ['', 'x', '[]', 'null', '{"type":"match"}', '{"type":"match","data":{"path":3}}'])
    expect(decodeRgLine(Buffer.from(text))).toBeUndefined()
})

test('a long line keeps its beginning, its number and the ranges there', () => {
  const text = `"},"line_number":1,\\${'ä'.repeat(2_000)}`
  const submatches = [
    { match: { text: '},"start":1,"end":2}' }, start: 2, end: 4 },
    { match: { text: 'ä' }, start: 3_000, end: 3_002 },
  ]
  const found = decodeLong(event({ text: './}"\\"{x' }, { text }, submatches))
  expect(found).toMatchObject({ path: './}"\\"{x', line: 7, ranges: [[2, 4]], isCut: true })
  const kept = Buffer.from(found.bytes).toString()
  expect(kept.length).toBeGreaterThan(150)
  expect(text.startsWith(kept)).toBe(true)
})

test.each(Array.from({ length: 12 }, (_, shift) => [shift]))(
  'truncates a long line between characters and escapes, shifted by %d',
  (shift) => {
    const text = 'x'.repeat(shift) + '\u0001🦜\\"é'.repeat(500)
    const kept = Buffer.from(decodeLong(event({ text: './a' }, { text })).bytes).toString()
    expect(kept.length).toBeGreaterThan(100)
    expect(text.startsWith(kept)).toBe(true)
  },
)

test('a long line that is not UTF-8 keeps its bytes', () => {
  const bytes = Buffer.alloc(5_000, 0xe9)
  const found = decodeLong(event({ text: './a' }, { bytes: bytes.toString('base64') }))
  expect(found.bytes.byteLength).toBeGreaterThan(100)
  expect(found.bytes.every((byte) => byte === 0xe9)).toBe(true)
})

test('a long line with more ranges than are kept has a number and some of them', () => {
  const submatches = Array.from({ length: 1_000 }, (_, at) => ({
    match: { text: 'x' },
    start: at,
    end: at + 1,
  }))
  const found = decodeLong(event({ text: './a' }, { text: 'x'.repeat(1_000) }, submatches))
  expect(found.line).toBe(7)
  expect(found.ranges.slice(0, 2)).toEqual([
    [0, 1],
    [1, 2],
  ])
})
