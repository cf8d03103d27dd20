import { expect, test } from 'bun:test'
import { ERRORS, type ErrorCode, SandwireError } from '@sandwire/protocol'
import { exitCodeOf, exitCodeOfError, exitCodeOfSignal, isSignalExit } from './exit-code.ts'

test('exitCodeOf is the remote status, and 128 + n for a signal', () => {
  expect(exitCodeOf({ code: 0, signal: null })).toBe(0)
  expect(exitCodeOf({ code: 77, signal: null })).toBe(77)
  expect(exitCodeOf({ code: null, signal: 'SIGKILL' })).toBe(137)
  expect(exitCodeOf({ code: null, signal: null })).toBe(255)
  expect(exitCodeOfSignal('SIGPIPE')).toBe(141)
  expect([0, 128, 129, 141, 255].map(isSignalExit)).toEqual([false, false, true, true, false])
})

test('exitCodeOfError follows the table of errors, and is never 0', () => {
  expect(exitCodeOfError(new SandwireError('link_lost', ''))).toBe(255)
  expect(exitCodeOfError(new SandwireError('command_not_found', ''))).toBe(127)
  for (const code of Object.keys(ERRORS) as ErrorCode[])
    expect(exitCodeOfError(new SandwireError(code, ''))).toBeGreaterThan(0)
})
