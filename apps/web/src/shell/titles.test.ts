import { expect, test } from 'bun:test'
import { pageTitle } from './titles.ts'

test('titles the page after the focused view', () => {
  const terminal = { kind: 'terminal', sandbox: 'x' } as const
  expect(pageTitle(terminal, 'bash', 'dev')).toBe('bash — dev — Sandwire')
  expect(pageTitle(terminal, '', 'dev')).toBe('Terminal — dev — Sandwire')
  expect(pageTitle({ kind: 'file', sandbox: 'x', path: 'a/b.txt' }, undefined, 'dev')).toBe(
    'b.txt — dev — Sandwire',
  )
  expect(pageTitle(undefined, undefined, '')).toBe('Sandwire')
})
