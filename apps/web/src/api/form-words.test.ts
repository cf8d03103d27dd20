import { expect, test } from 'bun:test'
import { nameFormField } from './form-words.ts'

const WORDS = { q: 'Cannot search for this', 'network.allow': 'Cannot use these hosts' }

test('a refusal names what the form calls it', () => {
  expect(nameFormField('Cannot use parameter "q": unclosed group', WORDS)).toBe(
    'Cannot search for this: unclosed group',
  )
  expect(nameFormField('Cannot use "network.allow.0": expected a host', WORDS)).toBe(
    'Cannot use these hosts: expected a host',
  )
})

test('what the form does not know stays as it was said', () => {
  for (const message of [
    'Cannot use parameter "query": empty',
    'Cannot use "toString": unknown',
    'Server unreachable',
  ])
    expect(nameFormField(message, WORDS)).toBe(message)
})
