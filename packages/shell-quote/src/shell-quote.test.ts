import { expect, test } from 'bun:test'
import { shellQuote } from './shell-quote.ts'

test.each([
  ['plain/word-1.txt', 'plain/word-1.txt'],
  ['', "''"],
  ['two words', "'two words'"],
  ["it's", "'it'\\''s'"],
  ['$HOME', "'$HOME'"],
  ['~', "'~'"],
])('quotes %p as %p', (word, quoted) => {
  expect(shellQuote(word)).toBe(quoted)
})

test('gives back every word when a shell reads it', () => {
  const words = ['', 'a b', "it's", '$(exit 1)', '`id`', '\\', '"', '*', '-n', 'new\nline', '#x', 'é']
  const { stdout } = Bun.spawnSync(['sh', '-c', `printf '%s\\0' ${words.map(shellQuote).join(' ')}`])
  expect(stdout.toString().split('\0').slice(0, -1)).toEqual(words)
})
