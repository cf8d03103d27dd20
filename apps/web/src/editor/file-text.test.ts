import { expect, test } from 'bun:test'
import { FileText } from './file-text.ts'

/** What is typed at the start of a text. */
function typed(text: FileText, added: string): FileText {
  return text.withLines(text.lines.replace(0, 0, FileText.of(added).lines))
}

test('a text is given back as it was', () => {
  const wholes = ['', '\n', '\r\n', 'a\r\nb\r\n', 'a\nb\r\nc', '\na\r\n', 'a\rb\r\nc', '\r', '\r\r\n']
  for (const whole of [...wholes, '\u{feff}', '\u{feff}a\r\nb', '\u{feff}\u{feff}a', 'a\u{feff}'])
    expect(FileText.of(whole).toString()).toBe(whole)
})

test('what is typed at the start stands behind a byte order mark', () => {
  expect(typed(FileText.of('\u{feff}one'), 'N').toString()).toBe('\u{feff}None')
})

test('a new line ends as the others do', () => {
  expect(typed(FileText.of('a\r\nb'), 'x\ny').toString()).toBe('x\r\nya\r\nb')
  expect(typed(FileText.of('a\nb'), 'x\ny').toString()).toBe('x\nya\nb')
})

test('two texts are the same when their files are', () => {
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

test('a text says what is around its lines', () => {
  const ends = ['', 'a', 'a\n', 'a\r\nb', 'a\nb\r\nc', 'a\rb'].map((whole) => FileText.of(whole).ends)
  expect(ends).toEqual([undefined, undefined, 'LF', 'CRLF', 'mixed', 'mixed'])
  expect([FileText.of('\u{feff}a').hasMark, FileText.of('a').hasMark]).toEqual([true, false])
})

test('lines are the same whatever they end with', () => {
  const wholes = ['a\nb\n', 'a\r\nb\r\n', 'a\nb\r\n', '\u{feff}a\rb\n'].map((whole) => FileText.of(whole))
  for (const one of wholes) for (const other of wholes) expect(one.hasLinesOf(other)).toBe(true)
  expect(FileText.of('a\nb').hasLinesOf(FileText.of('a\r\nc'))).toBe(false)
})
