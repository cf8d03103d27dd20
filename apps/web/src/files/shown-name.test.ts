import { expect, test } from 'bun:test'
import { firstNames, shownName, shownWords, spokenName } from './shown-name.ts'

test('control characters of a name are seen, and are told from letters', () => {
  expect(shownName('new\nline.txt')).toBe('new‹\\n›line.txt')
  expect(shownName('new\\nline.txt')).toBe('new\\nline.txt')
  expect(shownName('\u001b[31mred\u007f')).toBe('‹\\x1b›[31mred‹\\x7f›')
  expect(shownName('caf\udce9\u0085😀')).toBe('caf�‹\\x85›😀')
})

test('spaces that would be lost are seen', () => {
  expect(shownName('usual name.txt')).toBe('usual name.txt')
  expect(shownName(' both ')).toBe('␣both␣')
  expect(shownName('dir /  file')).toBe('dir␣/␣␣file')
  expect(shownName('two  inside')).toBe('two␣␣inside')
  expect(shownName('unusual\u00a0one')).toBe('unusual␣one')
  expect(shownName('日本\u3000語')).toBe('日本\u3000語')
  expect(shownName('  ')).toBe('␣␣')
})

test('what turns the direction of text is left out, and a name of nothing else has words', () => {
  expect(shownName('gnp\u202e.exe')).toBe('gnp.exe')
  expect(shownName('\u202e')).toBe('(no printable name)')
})

test('a name is read out with words for what is not heard', () => {
  expect(spokenName('usual name.txt')).toBe('usual name.txt')
  expect(spokenName('new\nline.txt ')).toBe('new (new line) line.txt (space)')
  expect(spokenName('a\u001b\udce9')).toBe('a (character 1b) (not text)')
})

test('spaces around words mean nothing', () => {
  expect(shownWords(' vim  notes\u0007 ')).toBe('vim notes‹\\x07›')
})

test('the first names are said, and how many more there are', () => {
  expect(firstNames(['a', 'b\n'], 2)).toBe('a\nb‹\\n›')
  expect(firstNames(['a', 'b', 'c', 'd'], 2)).toBe('a\nb\nand 2 more')
})
