import { expect, test } from 'bun:test'
import { activeTab, EMPTY, openTab, splitView, type View } from './layout.ts'
import { readLayout, writeLayout } from './stored-layout.ts'

let minted = 0
const mint = () => `i${(minted += 1)}`

const views: readonly View[] = [
  { kind: 'terminal', sandbox: 'dev', session: 's.1', cwd: 'src', size: { cols: 103, rows: 40 } },
  { kind: 'file', sandbox: 'dev', path: 'ä\u{dcff}.ts', line: 3, column: 7 },
  { kind: 'diff', sandbox: 'dev', path: 'a', of: 'staged' },
  { kind: 'diff', sandbox: 'dev', path: 'a', of: { commit: 'abc123' } },
]

const full = views.reduce((layout, view) => openTab(layout, view, mint), EMPTY)
const split = splitView(
  full,
  activeTab(full)?.focus ?? '',
  { view: { kind: 'terminal', sandbox: 'x' }, direction: 'row' },
  mint,
)

test('what was open comes back', () => {
  expect(readLayout(writeLayout(split))).toEqual(split)
  expect(readLayout(writeLayout(EMPTY))).toEqual(EMPTY)
})

test('nonsense is an empty page', () => {
  for (const text of [null, '', 'null', '{', '[]', '{"tabs":1}', '{"tabs":[],"active":null,"views":"{"}'])
    expect(readLayout(text)).toEqual(EMPTY)
})

test('a tab with a view that is not understood is left out, the others stay', () => {
  const text = writeLayout(split).replace('\\"kind\\":\\"file\\"', '\\"kind\\":\\"hologram\\"')
  expect(text).not.toBe(writeLayout(split))
  const back = readLayout(text)
  expect(back.tabs).toHaveLength(split.tabs.length - 1)
  expect(Object.values(back.views).every(({ kind }) => kind !== 'file')).toBe(true)
})
