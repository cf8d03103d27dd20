import { expect, test } from 'bun:test'
import { arrowText } from './keys.ts'

test('arrows are sent as the program asks for them', () => {
  expect(arrowText('up', false)).toBe('\u{1b}[A')
  expect(arrowText('left', true)).toBe('\u{1b}OD')
})
