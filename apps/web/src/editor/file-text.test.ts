import { expect, test } from 'bun:test'
import { FileText } from './file-text.ts'

/** Types at the start of a text. */
function typed(text: FileText, added: string): FileText {
  return text.withLines(text.lines.replace(0, 0, FileText.of(added).lines))
}

test('round-trips a text', () => {
  const wholes = ['', '\n', '\r\n', 'a\r\nb\r\n', 'a\nb\r\nc', '\na\r\n', 'a\rb\r\nc', '\r', '\r\r\n']
  for (const whole of [...wholes, '\u{feff}', '\u{feff}a\r\nb', '\u{feff}\u{feff}a', 'a\u{feff}'])
    expect(FileText.of(whole).toString()).toBe(whole)
})

test('keeps the byte order mark before text typed at the start', () => {
  expect(typed(FileText.of('\u{feff}one'), 'N').toString()).toBe('\u{feff}None')
})

test('ends new lines like the existing ones', () => {
  expect(typed(FileText.of('a\r\nb'), 'x\ny').toString()).toBe('x\r\nya\r\nb')
  expect(typed(FileText.of('a\nb'), 'x\ny').toString()).toBe('x\nya\nb')
})

test('compares texts by their saved bytes', () => {
  const [mark, none] = [FileText.of('\u{feff}a'), FileText.of('a')]
  expect([mark.equals(none), none.equals(mark), mark.equals(FileText.of('\u{feff}a'))]).toEqual([
    false,
    false,
    true,
  ])
  expect(FileText.of('a\r\nb').equals(FileText.of('a\nb'))).toBe(false)
  const joined = FileText.of('a\r\nb').withLines(FileText.of('ab').lines)
  expect(joined.equals(FileText.of('ab'))).toBe(true)
  expect(typed(FileText.of('b'), 'a').equals(FileText.of('ab'))).toBe(true)
})

test('reports byte order mark and line endings', () => {
  const ends = ['', 'a', 'a\n', 'a\r\nb', 'a\nb\r\nc', 'a\rb'].map((whole) => FileText.of(whole).ends)
  expect(ends).toEqual([undefined, undefined, 'LF', 'CRLF', 'mixed', 'mixed'])
  expect([FileText.of('\u{feff}a').hasMark, FileText.of('a').hasMark]).toEqual([true, false])
})

test('compares lines regardless of line endings', () => {
  const wholes = ['a\nb\n', 'a\r\nb\r\n', 'a\nb\r\n', '\u{feff}a\rb\n'].map((whole) => FileText.of(whole))
  for (const one of wholes) for (const other of wholes) expect(one.hasLinesOf(other)).toBe(true)
  expect(FileText.of('a\nb').hasLinesOf(FileText.of('a\r\nc'))).toBe(false)
})
