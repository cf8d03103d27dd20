import { expect, test } from 'bun:test'
import { shownName } from './shown-name.ts'

test('control characters of a name are seen', () => {
  expect(shownName('new\nline.txt')).toBe('new\\nline.txt')
  expect(shownName('\u001b[31mred\u007f')).toBe('\\x1b[31mred\\x7f')
  expect(shownName('caf\udce9\u0085😀')).toBe('caf�\\x85😀')
})

test('what turns the direction of text is left out, and a name of nothing else has words', () => {
  expect(shownName('gnp\u202e.exe')).toBe('gnp.exe')
  expect(shownName('\u202e')).toBe('(no printable name)')
})
