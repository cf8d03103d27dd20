import { expect, test } from 'bun:test'
import { EMPTY, type Layout, openTab, renameTab, type View } from '../layout/layout.ts'
import { labelTabs } from './tab-labels.ts'

const context = { titles: {}, nameSandbox: (sandbox: string) => sandbox }

function layoutOf(views: readonly View[]): Layout {
  let minted = 0
  const mint = (): string => `i${(minted += 1)}`
  return views.reduce((layout, view) => openTab(layout, view, mint), EMPTY)
}

const file = (path: string, sandbox = 'dev'): View => ({ kind: 'file', sandbox, path })
const shell = (session: string, sandbox = 'dev'): View => ({ kind: 'terminal', sandbox, session })

/** Tab names, with the dimmed part in brackets. */
function labelsOf(views: readonly View[], changes: Partial<typeof context> = {}): readonly string[] {
  const layout = layoutOf(views)
  const labels = labelTabs(layout, { ...context, ...changes })
  return layout.tabs.map(({ id }) => {
    const { name = '', context = '' } = labels.get(id) ?? {}
    return context === '' ? name : `${name} (${context})`
  })
}

test('adds as many folders as tell files of one name apart', () => {
  expect(labelsOf([file('v.txt'), file('a/w.txt')])).toEqual(['v.txt', 'w.txt'])
  expect(labelsOf([file('v.txt'), file('deep/a/b/c/v.txt')])).toEqual(['v.txt', 'v.txt (…/c)'])
  expect(labelsOf([file('a/x/v.txt'), file('b/x/v.txt'), file('c/v.txt')])).toEqual([
    'v.txt (a/x)',
    'v.txt (b/x)',
    'v.txt (c)',
  ])
  expect(labelsOf([file('x/v.txt'), file('a/x/v.txt')])).toEqual(['v.txt (x)', 'v.txt (a/x)'])
})

test('adds the sandbox to files of one path', () => {
  expect(labelsOf([file('a/v.txt', 'dev'), file('a/v.txt', 'other')])).toEqual([
    'v.txt (dev)',
    'v.txt (other)',
  ])
})

test('adds what is compared to diffs of one file', () => {
  const diff = { kind: 'diff', sandbox: 'dev', path: 'a/v.txt' } as const
  expect(
    labelsOf([
      { ...diff, of: 'unstaged' },
      { ...diff, of: 'staged' },
      { ...diff, of: { commit: '0123456789abcdef' } },
    ]),
  ).toEqual(['v.txt (changes) (unstaged)', 'v.txt (changes) (staged)', 'v.txt (changes) (0123456)'])
})

test('numbers terminals of one name, and adds the sandbox where there are several', () => {
  expect(labelsOf([shell('1'), shell('2'), shell('3', 'other'), shell('4')])).toEqual([
    'dev',
    'dev 2',
    'other',
    'dev 3',
  ])
  const titles = { 1: 'vim', 2: 'make', 3: 'vim', 4: 'make' }
  expect(labelsOf([shell('1'), shell('2'), shell('3', 'other'), shell('4')], { titles })).toEqual([
    'vim (dev)',
    'make',
    'vim (other)',
    'make 2',
  ])
})

test('keeps names given by the user, and does not count them as duplicates', () => {
  const layout = layoutOf([shell('1'), shell('2')])
  const named = renameTab(layout, layout.tabs[0]?.id ?? '', 'dev')
  const labels = labelTabs(named, context)
  expect(named.tabs.map(({ id }) => labels.get(id)?.name)).toEqual(['dev', 'dev'])
})

test('has a tooltip with the full location', () => {
  const layout = layoutOf([
    shell('1'),
    shell('2'),
    file('deep/\u{202e}a/v.txt'),
    { kind: 'diff', sandbox: 'dev', path: 'a/v.txt', of: 'staged' },
  ])
  const labels = labelTabs(layout, { ...context, titles: { 2: 'vim' } })
  expect(layout.tabs.map(({ id }) => labels.get(id)?.hint)).toEqual([
    'dev — terminal in dev',
    'vim — terminal in dev',
    'deep/a/v.txt — dev',
    'a/v.txt, staged — dev',
  ])
})
