import { expect, test } from 'bun:test'
import { activeTab, EMPTY, MAX_TAB_NAME, openTab, renameTab, splitView, type View } from './layout.ts'
import { leavesOf } from './pane-tree.ts'
import { readLayout, writeLayout } from './stored-layout.ts'

let minted = 0
const mint = () => `i${(minted += 1)}`

const views: readonly View[] = [
  { kind: 'terminal', sandbox: 'dev', session: 's.1', cwd: 'src', size: { cols: 103, rows: 40 } },
  { kind: 'file', sandbox: 'dev', path: 'ä\u{dcff}.ts', line: 3, column: 7 },
  { kind: 'diff', sandbox: 'dev', path: 'a', of: 'staged' },
  { kind: 'diff', sandbox: 'dev', path: 'a', of: { commit: 'abc123' } },
  { kind: 'diff', sandbox: 'dev', path: 'b', of: 'staged', repo: 'proj', from: 'a' },
]

const full = views.reduce((layout, view) => openTab(layout, view, mint), EMPTY)
const split = splitView(
  full,
  activeTab(full)?.focus ?? '',
  { view: { kind: 'terminal', sandbox: 'x' }, direction: 'row' },
  mint,
)

test('restores what was open', () => {
  expect(readLayout(writeLayout(split))).toEqual(split)
  expect(readLayout(writeLayout(EMPTY))).toEqual(EMPTY)
})

test('reads garbage as an empty layout', () => {
  for (const text of [null, '', 'null', '{', '[]', '{"tabs":1}', '{"tabs":[],"active":null,"views":"{"}'])
    expect(readLayout(text)).toEqual(EMPTY)
})

test('drops a tab with an unknown view and keeps the others', () => {
  const text = writeLayout(split).replace('\\"kind\\":\\"file\\"', '\\"kind\\":\\"hologram\\"')
  expect(text).not.toBe(writeLayout(split))
  const back = readLayout(text)
  expect(back.tabs).toHaveLength(split.tabs.length - 1)
  expect(Object.values(back.views).every(({ kind }) => kind !== 'file')).toBe(true)
})

test('drops only the invalid part', () => {
  const stored = JSON.parse(writeLayout(split)) as { tabs: Record<string, unknown>[]; views: string }
  const changed = (change: (copy: typeof stored) => void) => {
    const copy = structuredClone(stored)
    change(copy)
    return readLayout(JSON.stringify(copy))
  }
  const named = changed(({ tabs }) => (tabs[0] = { ...tabs[0], name: `${'x'.repeat(300)}` }))
  expect(named.tabs.map(({ name }) => name?.length)).toEqual([MAX_TAB_NAME, undefined, undefined, undefined])
  expect(changed(({ tabs }) => (tabs[0] = { ...tabs[0], name: 7, mood: 'new' }))).toEqual(split)
  expect(changed(({ tabs }) => tabs.push({ id: 4 }))).toEqual(split)
  const zeroth = changed((copy) => (copy.views = copy.views.replace('"line":3', '"line":0,"new":true')))
  const { line: _, ...withoutLine } = views[1] as Extract<View, { kind: 'file' }>
  expect(Object.values(zeroth.views)).toContainEqual(withoutLine)
  expect(zeroth.tabs).toEqual(split.tabs)
})

test('keeps the other side of a split with an unknown view', () => {
  const text = writeLayout(split).replace('\\"sandbox\\":\\"x\\"', '\\"sandbox\\":7')
  const back = readLayout(text)
  expect(back.tabs).toEqual(full.tabs)
})

test('restores panes up to the maximum depth', () => {
  let deep = openTab(EMPTY, { kind: 'terminal', sandbox: 'dev' }, mint)
  for (let made = 0; made < 100; made += 1)
    deep = splitView(
      deep,
      activeTab(deep)?.focus ?? '',
      { view: { kind: 'terminal', sandbox: 'dev' }, direction: 'row' },
      () => crypto.randomUUID(),
    )
  const [tab] = deep.tabs
  expect(tab === undefined ? 0 : leavesOf(tab.panes).length).toBe(65)
  expect(readLayout(writeLayout(deep))).toEqual(deep)
})

test('restores many tabs', () => {
  let many = EMPTY
  for (let made = 0; made < 300; made += 1) many = openTab(many, { kind: 'terminal', sandbox: 'dev' }, mint)
  expect(readLayout(writeLayout(many))).toEqual(many)
})

test('restores a tab name unchanged', () => {
  for (const name of ['x'.repeat(300), `${'x'.repeat(MAX_TAB_NAME - 1)}😀`, '\u{d83d}']) {
    const named = renameTab(split, split.tabs[0]?.id ?? '', name)
    expect(named.tabs[0]?.name?.length ?? 0).toBeLessThanOrEqual(MAX_TAB_NAME)
    expect(readLayout(writeLayout(named))).toEqual(named)
  }
})
