import { expect, test } from 'bun:test'
import { renameFields } from './field-names.ts'

const NAMES = {
  'limits.memoryBytes': { option: '--memory', counts: 'bytes' },
  'network.allow': { option: '--allow' },
} as const

test('a field is called as on the command line, and a range is told in its units', () => {
  expect(
    renameFields('Cannot use "limits.memoryBytes": expected a whole number from 1024 to 1500', NAMES),
  ).toBe('Cannot use "--memory": expected a size from 1K to 1500')
  expect(renameFields('Cannot use "network.allow.12": expected a host', NAMES)).toBe(
    'Cannot use "--allow": expected a host',
  )
})

test('what is not known stays as it is', () => {
  for (const message of [
    'Cannot use "network": unknown',
    'Cannot use "constructor": unknown',
    'Cannot make the sandbox: "limits.memoryBytes"',
    '',
  ])
    expect(renameFields(message, NAMES)).toBe(message)
})
