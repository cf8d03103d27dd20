import { expect, test } from 'bun:test'
import { type RgLine, RgLines } from './rg-lines.ts'

const LIMITS = { maxBytes: 20, keptBytes: 8 }

/** Feeds text in pieces of a size, and shows what comes out. */
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
  'a marker in the head is not taken for the one behind it, in pieces of %d',
  (size) => {
    expect(lines(`<M>${'x'.repeat(40)}<M>7\n`, size)).toEqual([['<M>xxxxx', '<M>7']])
  },
)

test('a line of the longest length is whole', () => {
  expect(lines(`${'x'.repeat(20)}\n${'y'.repeat(21)}\n`, 6)).toEqual([
    'x'.repeat(20),
    ['yyyyyyyy', undefined],
  ])
})
