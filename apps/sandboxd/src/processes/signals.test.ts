import { expect, test } from 'bun:test'
import { isSignalName, signalNumber } from './signals.ts'

test('a signal name is known by its full name only', () => {
  expect(isSignalName('SIGINT')).toBe(true)
  for (const name of ['INT', 'sigint', '2', 'SIGNOPE', '', '__proto__'])
    expect(isSignalName(name)).toBe(false)
})

test('a signal has its Linux number', () => {
  expect(signalNumber('SIGKILL')).toBe(9)
  expect(signalNumber('SIGWINCH')).toBe(28)
})
