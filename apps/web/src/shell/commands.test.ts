import { expect, test } from 'bun:test'
import { keysOf, formatKeys } from './commands.ts'

const none = { ctrlKey: false, metaKey: false, shiftKey: false, altKey: false }

test('identifies keys by position, regardless of Shift', () => {
  expect(keysOf({ ...none, ctrlKey: true, shiftKey: true, code: 'KeyP', key: 'P' })).toBe('Ctrl+Shift+P')
  expect(keysOf({ ...none, metaKey: true, shiftKey: true, code: 'Backslash', key: '|' })).toBe(
    'Ctrl+Shift+\\',
  )
  expect(keysOf({ ...none, code: 'F1', key: 'F1' })).toBe('F1')
  expect(keysOf({ ...none, ctrlKey: true, shiftKey: true, code: 'ArrowLeft', key: 'ArrowLeft' })).toBe(
    'Ctrl+Shift+ArrowLeft',
  )
})

test('formats shortcuts for the platform', () => {
  expect(formatKeys('Ctrl+Shift+P', false)).toBe('Ctrl+Shift+P')
  expect(formatKeys('Ctrl+Shift+ArrowLeft', true)).toBe('⌘⇧←')
})
