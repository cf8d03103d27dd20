import { describe, expect, test } from 'bun:test'
import { clipboardText, checkPaste, preparePaste } from './clipboard.ts'

describe('checkPaste', () => {
  const plain = { isBracketed: false, asks: 'would-run' } as const
  const bracketed = { isBracketed: true, asks: 'would-run' } as const

  test('asks about several lines that a shell would run', () => {
    expect(checkPaste('a\nb\n', plain)).toEqual({ lines: 2, preview: 'a\nb\n', leftOut: 0, notShown: 0 })
    expect(checkPaste('a\rb', plain)?.lines).toBe(2)
  })
  test('does not ask about one line, or with bracketed paste', () => {
    expect(checkPaste('make test\n', plain)).toBeUndefined()
    expect(checkPaste('a\nb', bracketed)).toBeUndefined()
  })
  test('asks always or never, if so configured', () => {
    expect(checkPaste('a\nb', { isBracketed: true, asks: 'always' })?.lines).toBe(2)
    expect(checkPaste('a', { isBracketed: false, asks: 'always' })).toBeUndefined()
    expect(checkPaste('a\nb', { isBracketed: false, asks: 'never' })).toBeUndefined()
  })
  test('shows invisible characters, and counts what is removed or not shown', () => {
    const hidden = 'a\u{3}b\tc\n\u{7f}\u{85}d\u{202e}e\u{200b}'
    expect(checkPaste(hidden, plain)).toMatchObject({
      preview: 'a<^C>b\tc\n<^?><U+85>d<U+202E>e<U+200B>',
      leftOut: 3,
    })
    const long = checkPaste(`a\n${'b'.repeat(5_000)}`, plain)
    expect(long?.preview.length).toBe(4_000)
    expect(long?.notShown).toBe(1_002)
  })
})

describe('preparePaste', () => {
  test('sends Enter for every line break', () => {
    expect(preparePaste('a\r\nb\nc', false)).toBe('a\rb\rc')
  })
  test('lets nothing in the text end the brackets (threat T23)', () => {
    expect(preparePaste('x\u{1b}[201~rm -rf\n', true)).toBe('\u{1b}[200~x[201~rm -rf\r\u{1b}[201~')
    expect(preparePaste('x\u{9b}201~y', true)).toBe('\u{1b}[200~x201~y\u{1b}[201~')
  })
  test.each([true, false])('sends no control characters, with brackets: %p (threat T23)', (isBracketed) => {
    const codes = [...Array(0x20).keys(), 0x7f, ...Array.from({ length: 0x20 }, (_, at) => 0x80 + at)]
    const sent = preparePaste(`${String.fromCharCode(...codes)}é漢🙂`, isBracketed)
    expect(sent.replace('\u{1b}[200~', '').replace('\u{1b}[201~', '')).toBe('\t\r\ré漢🙂')
  })
})

test('decodes the text that a program sets', () => {
  expect(clipboardText(`c;${btoa('plain')}`)).toBe('plain')
  expect(clipboardText(`;${Buffer.from('漢字 é').toString('base64')}`)).toBe('漢字 é')
})

test('ignores queries, garbage and oversized text (threat T23)', () => {
  const tooMuch = Buffer.alloc(1024 * 1024).toString('base64')
  for (const data of ['c;?', 'c;', 'c', '', 'c;***', `c;${tooMuch}`])
    expect(clipboardText(data)).toBeUndefined()
})
