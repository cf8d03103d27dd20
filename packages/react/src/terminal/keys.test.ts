import { expect, test } from 'bun:test'
import { arrowText } from './keys.ts'

test('sends arrow keys in the mode that the program set', () => {
  expect(arrowText('up', false)).toBe('\u{1b}[A')
  expect(arrowText('left', true)).toBe('\u{1b}OD')
})
