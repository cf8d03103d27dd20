import { expect, test } from 'bun:test'
import { pageTitle } from './titles.ts'

const terminal = { kind: 'terminal', sandbox: 'x' } as const

test('titles the page after the focused view', () => {
  expect(pageTitle(terminal, { programTitle: 'bash' }, 'dev')).toBe('Terminal: bash — dev — Sandwire')
  expect(pageTitle(terminal, { programTitle: '' }, 'dev')).toBe('Terminal — dev — Sandwire')
  expect(pageTitle({ kind: 'file', sandbox: 'x', path: 'a/b.txt' }, {}, 'dev')).toBe(
    'File: b.txt — dev — Sandwire',
  )
  const diff = { kind: 'diff', sandbox: 'x', path: 'a/b.txt', of: 'staged' } as const
  expect(pageTitle(diff, {}, 'dev')).toBe('Changes: b.txt — dev — Sandwire')
  expect(pageTitle(undefined, {}, '')).toBe('Sandwire')
})

test("prefers the user's name for the tab", () => {
  expect(pageTitle(terminal, { tabName: 'build', programTitle: 'bash' }, 'dev')).toBe(
    'build — dev — Sandwire',
  )
})

test('lets no program or file pose as a page of Sandwire (threat T24)', () => {
  const posing = 'Sandwire — Sign in'
  expect(pageTitle(terminal, { programTitle: posing }, 'dev')).toStartWith('Terminal: ')
  expect(pageTitle({ kind: 'file', sandbox: 'x', path: posing }, {}, 'dev')).toStartWith('File: ')
})
