import { expect, test } from 'bun:test'
import { displayName, displayTitle, formatPaths, spokenName } from './display-name.ts'

test('shows control characters of a name distinctly from letters', () => {
  expect(displayName('new\nline.txt')).toBe('new‹\\n›line.txt')
  expect(displayName('new\\nline.txt')).toBe('new\\nline.txt')
  expect(displayName('\u001b[31mred\u007f')).toBe('‹\\x1b›[31mred‹\\x7f›')
  expect(displayName('caf\udce9\u0085😀')).toBe('caf�‹\\x85›😀')
})

test('shows spaces that would go unnoticed', () => {
  expect(displayName('usual name.txt')).toBe('usual name.txt')
  expect(displayName(' both ')).toBe('␣both␣')
  expect(displayName('dir /  file')).toBe('dir␣/␣␣file')
  expect(displayName('two  inside')).toBe('two␣␣inside')
  expect(displayName('unusual\u00a0one')).toBe('unusual␣one')
  expect(displayName('日本\u3000語')).toBe('日本\u3000語')
  expect(displayName('  ')).toBe('␣␣')
})

test('removes bidirectional controls, and has a placeholder for an empty result', () => {
  expect(displayName('gnp\u202e.exe')).toBe('gnp.exe')
  expect(displayName('\u202e')).toBe('(no printable name)')
})

test('spells out invisible characters for screen readers', () => {
  expect(spokenName('usual name.txt')).toBe('usual name.txt')
  expect(spokenName('new\nline.txt ')).toBe('new (new line) line.txt (space)')
  expect(spokenName('a\u001b\udce9')).toBe('a (character 1b) (not text)')
})

test('collapses spaces in titles', () => {
  expect(displayTitle(' vim  notes\u0007 ')).toBe('vim notes‹\\x07›')
})

test('lists the first paths and counts the rest', () => {
  expect(formatPaths(['a', 'b\n'], 2)).toBe('a\nb‹\\n›')
  expect(formatPaths(['a', 'b', 'c', 'd'], 2)).toBe('a\nb\nand 2 more')
})
