import { expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { messageWithOptions } from './field-names.ts'

const NAMES = {
  'limits.memoryBytes': { option: '--memory', unit: 'bytes' },
  'network.allow': { option: '--allow' },
} as const

function messageFor(field: string, problem: string): string {
  return messageWithOptions(
    new SandwireError('bad_request', `Cannot use "${field}": ${problem}`, { details: { field, problem } }),
    NAMES,
  )
}

test('names a refused field by its option, with the unit of numbers', () => {
  expect(messageFor('limits.memoryBytes', 'expected a whole number from 1024 to 1500')).toBe(
    'Cannot use "--memory": expected a whole number from 1024 to 1500 (bytes)',
  )
  expect(messageFor('network.allow.12', 'expected a host')).toBe('Cannot use "--allow": expected a host')
})

test('leaves messages about other fields, and without a field, as they are', () => {
  expect(messageFor('network', 'unknown')).toBe('Cannot use "network": unknown')
  expect(messageFor('constructor', 'unknown')).toBe('Cannot use "constructor": unknown')
  const other = new SandwireError('bad_request', 'Cannot use "network.allow": prose')
  expect(messageWithOptions(other, NAMES)).toBe(other.message)
})
