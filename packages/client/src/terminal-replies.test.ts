import { expect, test } from 'bun:test'
import { withoutTerminalReplies } from './terminal-replies.ts'

const encoder = new TextEncoder()
const rest = (text: string): string => new TextDecoder().decode(withoutTerminalReplies(encoder.encode(text)))

test.each([
  ['device attributes', '\x1b[?1;2c\x1b[>0;276;0c'],
  ['cursor and status reports', '\x1b[12;40R\x1b[0n'],
  ['mode reports', '\x1b[?2026;2$y'],
  ['window and keyboard reports', '\x1b[8;24;80t\x1b[?1u'],
  ['focus', '\x1b[I\x1b[O'],
  ['colors', '\x1b]11;rgb:0000/0000/0000\x1b\\\x1b]10;rgb:ff/ff/ff\x07'],
  ['strings', '\x1bP1+r544e=78\x1b\\'],
])('withoutTerminalReplies removes %s', (_name, text) => {
  expect(rest(text)).toBe('')
  expect(rest(`a${text}b`)).toBe('ab')
})

test.each([
  'ls\r',
  '\x1b[A\x1bOB\x1b[1;5C',
  '\x1b',
  '\x1b[200~pasted\x1b[201~',
  '\x1b[M !!',
  'grüße \u{1f980}',
  '\x1b[15~',
])('withoutTerminalReplies leaves keys and text alone: %j', (text) => {
  expect(rest(text)).toBe(text)
})

test('withoutTerminalReplies changes no other byte', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  expect(withoutTerminalReplies(bytes)).toEqual(bytes)
})
