import { expect, test } from 'bun:test'
import { describeLine, type Match, MatchGroups, MAX_TEXT_BYTES } from './matches.ts'
import type { ByteRange, FoundLine, RgEvent } from './rg-output.ts'

/** `m3` is a match in line 3, `c4` a context line, `/` the end of a file. */
function group(context: number, script: string): string[] {
  const groups = new MatchGroups(context)
  const events = script.split(' ').map((word): RgEvent => {
    if (word === '/') return { kind: 'file-end' }
    const line = Number(word.slice(1))
    const kind = word.startsWith('m') ? 'match' : 'context'
    return { kind, path: 'x', line, bytes: Buffer.from(String(line)), ranges: [], isCut: false }
  })
  return events.flatMap((event) => {
    const match = groups.push(event)
    return match === undefined ? [] : [show(match)]
  })
}

function show({ before, line, after }: Match): string {
  return `${before.join()}<${line}>${after.join()}`
}

test('without context reports every match at once', () => {
  expect(group(0, 'm1 m2')).toEqual(['<1>', '<2>'])
})

test('a match has its context lines', () => {
  expect(group(2, 'c1 c2 m3 c4 c5 /')).toEqual(['1,2<3>4,5'])
})

test('reports a match as soon as its context is complete', () => {
  expect(group(2, 'm1 c2 c3')).toEqual(['<1>2,3'])
})

test('a line between two matches is context of both, and a match is context of none', () => {
  expect(group(2, 'm1 c2 m3 m4 c5 c6 /')).toEqual(['<1>2', '2<3>', '<4>5,6'])
})

test('separate lines are not merged', () => {
  expect(group(1, 'm1 c2 c8 m9 c10 / c1 m2 /')).toEqual(['<1>2', '8<9>10', '1<2>'])
})

test('the end of a file ends the context of a match', () => {
  expect(group(3, 'm9 c10 / m1 c2 /')).toEqual(['<9>10', '<1>2'])
})

function line(bytes: Uint8Array | string, ranges: readonly ByteRange[] = []): FoundLine {
  const own = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
  return { kind: 'match', path: 'x', line: 1, bytes: own, ranges, isCut: false }
}

/** The texts of a line's ranges. */
function matched(found: FoundLine): string[] {
  const { text, ranges } = describeLine(found)
  return ranges.map(([start, end]) => text.slice(start, end))
}

test('ranges are positions in the text', () => {
  const text = 'ä🦜 hello ä hello'
  const at = Buffer.from(text).indexOf('hello')
  const second = Buffer.from(text).lastIndexOf('hello')
  const found = line(text, [
    [at, at + 5],
    [second, second + 5],
  ])
  expect(describeLine(found).text).toBe(text)
  expect(matched(found)).toEqual(['hello', 'hello'])
  expect(describeLine(found).ranges[0]).toEqual([4, 9])
})

test('bytes that are not UTF-8 are one position each', () => {
  const found = line(Uint8Array.of(0xe9, 0x20, 0x61, 0x62), [[2, 4]])
  expect(describeLine(found)).toEqual({ text: '\udce9 ab', ranges: [[2, 4]], isCut: false })
})

test('a match within a character keeps text and ranges correct', () => {
  const found = line('xäy', [[1, 2]])
  const { text, ranges } = describeLine(found)
  expect([text, ranges]).toEqual(['x\udcc3\udca4y', [[1, 2]]])
})

test('reports a long line around its first match', () => {
  const text = `${'ä'.repeat(5_000)}needle${'ö'.repeat(5_000)}needle`
  const at = Buffer.from(text).indexOf('needle')
  const second = Buffer.from(text).lastIndexOf('needle')
  const found = line(text, [
    [at, at + 6],
    [second, second + 6],
  ])
  const described = describeLine(found)
  expect(described.isCut).toBe(true)
  expect(matched(found)).toEqual(['needle'])
  expect(described.text.isWellFormed()).toBe(true)
  expect(text).toContain(described.text)
  expect(Buffer.byteLength(described.text)).toBeLessThanOrEqual(MAX_TEXT_BYTES)
})

test('ends a range at the end of a truncated text', () => {
  const found = line('x'.repeat(10_000), [[0, 10_000]])
  expect(describeLine(found).ranges).toEqual([[0, MAX_TEXT_BYTES]])
})

test('splits bytes that are not UTF-8 like any others', () => {
  const described = describeLine(line(new Uint8Array(10_000).fill(0x80)))
  expect(described.text).toHaveLength(MAX_TEXT_BYTES)
})

test('an empty match has an empty range', () => {
  expect(describeLine(line('', [[0, 0]]))).toEqual({ text: '', ranges: [[0, 0]], isCut: false })
})
