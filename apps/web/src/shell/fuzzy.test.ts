import { expect, test } from 'bun:test'
import { fuzzyFilter, fuzzyScore } from './fuzzy.ts'

test('matches letters in order', () => {
  expect(fuzzyScore('New terminal', 'nt')).toBeGreaterThan(0)
  expect(fuzzyScore('New terminal', 'tn w')).toBeUndefined()
})

test('ranks word starts and runs first', () => {
  const names = ['Untidy thing', 'New terminal', 'Next tab', 'internet']
  expect(fuzzyFilter(names, 'nt', (name) => name)[0]).toBe('New terminal')
  expect(fuzzyFilter(names, 'next', (name) => name)[0]).toBe('Next tab')
  expect(fuzzyFilter(names, ' ', (name) => name)).toEqual(names)
})
