import { describe, expect, test } from 'bun:test'
import { judgePaste, preparePaste } from './paste.ts'

describe('judgePaste', () => {
  test('asks about several lines that a shell would run', () => {
    expect(judgePaste('a\nb\n', false)).toEqual({ lines: 2, preview: 'a\nb\n' })
    expect(judgePaste('a\rb', false)?.lines).toBe(2)
  })
  test('asks nothing about one line, or where pastes are told from typing', () => {
    expect(judgePaste('make test\n', false)).toBeUndefined()
    expect(judgePaste('a\nb', true)).toBeUndefined()
  })
})

describe('preparePaste', () => {
  test('sends Enter for every end of line', () => {
    expect(preparePaste('a\r\nb\nc', false)).toBe('a\rb\rc')
  })
  test('lets nothing in the text end the brackets', () => {
    expect(preparePaste('x\u{1b}[201~rm -rf\n', true)).toBe('\u{1b}[200~x[201~rm -rf\r\u{1b}[201~')
  })
})
