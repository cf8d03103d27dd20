import { expect, test } from 'bun:test'
import { type OptionTable, ParsedOptions } from '../options/parse-options.ts'
import { requireNoPositionals, optionalSandbox, requireSandbox, requireSession } from './positionals.ts'

const options = (...argv: string[]) => new ParsedOptions<OptionTable>(argv, {})
const SESSION = `${'a'.repeat(32)}.${'b'.repeat(26)}`

test('accepts names and ids', () => {
  expect(requireSandbox(options('dev'))).toBe('dev')
  expect(requireSandbox(options('0'.repeat(32)))).toBe('0'.repeat(32))
  expect(optionalSandbox(options())).toBeUndefined()
  expect(requireSession(options(SESSION))).toBe(SESSION)
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
])('refuses text that could change the path of a request: %j', (text) => {
  expect(() => requireSandbox(options(text))).toThrow()
  expect(() => requireSession(options(text))).toThrow()
  expect(() => requireSession(options(`${SESSION}${text || 'x'}`))).toThrow()
})

test('refuses missing and extra arguments', () => {
  expect(() => requireSandbox(options())).toThrow('No sandbox is given')
  expect(() => requireSandbox(options('a', 'b'))).toThrow('Give only one sandbox')
  expect(() => requireSession(options())).toThrow('No session is given')
  expect(() => requireNoPositionals(options('a'))).toThrow('Unexpected argument "a"')
})
