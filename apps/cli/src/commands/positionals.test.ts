import { expect, test } from 'bun:test'
import { type OptionTable, ParsedOptions } from '../options/words.ts'
import { requireNoPositionals, optionalSandbox, readSandbox, readSession } from './positionals.ts'

const words = (...argv: string[]) => new ParsedOptions<OptionTable>(argv, {})
const SESSION = `${'a'.repeat(32)}.${'b'.repeat(26)}`

test('a sandbox and a session are read as they are', () => {
  expect(readSandbox(words('dev'))).toBe('dev')
  expect(readSandbox(words('0'.repeat(32)))).toBe('0'.repeat(32))
  expect(optionalSandbox(words())).toBeUndefined()
  expect(readSession(words(SESSION))).toBe(SESSION)
})

test.each([
  '..',
  '.',
  'a/b',
  'a%2fb',
  '../x',
  'Dev',
  'a?x=1',
  'a#b',
  '',
  '-',
  'a-',
  'é',
  'a'.repeat(64),
  'a\n',
])('what could change the path of a request is not taken: %j', (text) => {
  expect(() => readSandbox(words(text))).toThrow()
  expect(() => readSession(words(text))).toThrow()
  expect(() => readSession(words(`${SESSION}${text || 'x'}`))).toThrow()
})

test('missing and further words are told', () => {
  expect(() => readSandbox(words())).toThrow('No sandbox is given')
  expect(() => readSandbox(words('a', 'b'))).toThrow('Give one sandbox')
  expect(() => readSession(words())).toThrow('No session is given')
  expect(() => requireNoPositionals(words('a'))).toThrow('a word too many')
})
