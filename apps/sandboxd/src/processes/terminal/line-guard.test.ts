import { expect, test } from 'bun:test'
import { LineGuard, MAX_LINE_BYTES } from './line-guard.ts'
import type { Termios } from './pty-device.ts'

/** Settings of our terminals: ICRNL IXON IUTF8; ISIG ICANON ECHO* IEXTEN; ^C ^\ ^? ^U ^D ... */
const COOKED: Termios = {
  inputFlags: 0o42400,
  localFlags: 0o105073,
  controlCharacters: new Uint8Array([3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0]),
}

const bytes = (text: string) => new TextEncoder().encode(text)

function lengthAfter(text: string, termios = COOKED): number {
  const guard = new LineGuard()
  guard.advance(bytes(text), termios)
  return guard.length
}

test('a line guard counts the unfinished line only', () => {
  expect(lengthAfter('one\ntwo')).toBe(3)
  expect(lengthAfter('one\rtwo\r')).toBe(0)
})

test('a line guard applies erase characters', () => {
  expect(lengthAfter('abc\x7f')).toBe(2)
  expect(lengthAfter('aé\x7f')).toBe(1)
  expect(lengthAfter('one two  \x17')).toBe(4)
  expect(lengthAfter('abc\x15de')).toBe(2)
  expect(lengthAfter('\x7f\x7fa')).toBe(1)
})

test('a line guard stores a quoted control character', () => {
  expect(lengthAfter('ab\x16\x15')).toBe(3)
  expect(lengthAfter('ab\x16\n')).toBe(3)
})

test('a line guard is empty after an interrupt', () => {
  expect(lengthAfter('abc\x03d')).toBe(1)
})

test('a line guard does not count flow control and reprint', () => {
  expect(lengthAfter('a\x13\x11\x12b')).toBe(2)
})

test('a line guard treats CR as the modes say', () => {
  const asIs = { ...COOKED, inputFlags: 0 }
  const ignored = { ...COOKED, inputFlags: 0o200 }
  expect(lengthAfter('a\rb', asIs)).toBe(3)
  expect(lengthAfter('a\rb', ignored)).toBe(2)
  expect(lengthAfter('a\nb', { ...COOKED, inputFlags: 0o100 })).toBe(3)
})

test('a line guard accepts a line of exactly the longest length', () => {
  const guard = new LineGuard()
  const line = bytes('x'.repeat(MAX_LINE_BYTES))
  expect(guard.countFitting(line, COOKED)).toBe(MAX_LINE_BYTES)
  guard.advance(line, COOKED)
  expect(guard.countFitting(bytes('\n'), COOKED)).toBe(1)
  expect(guard.countFitting(bytes('x'), COOKED)).toBe(0)
  expect(guard.length).toBe(MAX_LINE_BYTES)
})

test('a line guard sends the kill character twice after a quoting character', () => {
  const guard = new LineGuard()
  guard.advance(bytes('ab\x16'), COOKED)
  expect(guard.killSequence(COOKED)).toEqual(new Uint8Array([21, 21]))
})

test('a line guard has no kill sequence for a line whose start cannot be erased', () => {
  const guard = new LineGuard()
  guard.advance(new Uint8Array([0x80, 0x80, 0x61]), COOKED)
  expect(guard.killSequence(COOKED)).toBeUndefined()
  // Without echo the kernel drops the line as a whole.
  expect(guard.killSequence({ ...COOKED, localFlags: 0o105003 })).toEqual(new Uint8Array([21]))
})

test('a line guard ends a refused line at its terminator, and before an interrupt', () => {
  const guard = new LineGuard()
  expect(guard.countRefused(bytes('abc\ndef'), COOKED)).toEqual({ count: 4, isOver: true })
  expect(guard.countRefused(bytes('abc\x03def'), COOKED)).toEqual({ count: 3, isOver: true })
  expect(guard.countRefused(bytes('abc'), COOKED)).toEqual({ count: 3, isOver: false })
})
