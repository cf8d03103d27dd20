import { expect, test } from 'bun:test'
import {
  activateTab,
  activeTab,
  changeView,
  closeTab,
  closeView,
  EMPTY,
  focusView,
  type Layout,
  moveTab,
  openTab,
  renameTab,
  reveal,
  shiftTab,
  splitView,
  stepPane,
  stepTab,
  type View,
} from './layout.ts'
import { leavesOf } from './pane-tree.ts'

function mintFrom(): () => string {
  let minted = 0
  return () => `i${(minted += 1)}`
}

const terminal: View = { kind: 'terminal', sandbox: 'dev' }
const file = { kind: 'file', sandbox: 'dev', path: 'a.ts' } as const satisfies View

function withTabs(count: number): { layout: Layout; mint: () => string; ids: readonly string[] } {
  const mint = mintFrom()
  let layout = EMPTY
  for (let made = 0; made < count; made += 1) layout = openTab(layout, terminal, mint)
  return { layout, mint, ids: layout.tabs.map(({ id }) => id) }
}

test('opens a tab after the active one and activates it', () => {
  const { layout, mint, ids } = withTabs(2)
  const more = openTab(activateTab(layout, ids[0] ?? ''), file, mint)
  expect(more.tabs.map(({ id }) => id)).toEqual([ids[0] ?? '', more.active ?? '', ids[1] ?? ''])
})

test('focuses an open file instead of opening it again', () => {
  const { layout, mint } = withTabs(1)
  const once = reveal(layout, file, mint)
  const twice = reveal(openTab(once, terminal, mint), { ...file, line: 7 }, mint)
  expect(twice.tabs).toHaveLength(3)
  expect(twice.active).toBe(once.active)
  expect(Object.values(twice.views)).toContainEqual({ ...file, line: 7 })
})

test('opens a new terminal every time', () => {
  const { layout, mint } = withTabs(1)
  expect(reveal(layout, terminal, mint).tabs).toHaveLength(2)
})

test('splits a pane, and closing one keeps the other', () => {
  const { layout, mint } = withTabs(1)
  const first = activeTab(layout)?.focus ?? ''
  const split = splitView(layout, first, { view: terminal, direction: 'row' }, mint)
  const second = activeTab(split)?.focus ?? ''
  expect(leavesOf(activeTab(split)?.panes ?? { kind: 'leaf', id: '' })).toEqual([first, second])
  const closed = closeView(split, second)
  expect(activeTab(closed)?.focus).toBe(first)
  expect(Object.keys(closed.views)).toEqual([first])
  expect(closeView(closed, first)).toEqual(EMPTY)
})

test('activates the neighbor of a closed tab', () => {
  const { layout, ids } = withTabs(3)
  expect(closeTab(layout, ids[2] ?? '').active).toBe(ids[1])
  expect(closeTab(activateTab(layout, ids[0] ?? ''), ids[0] ?? '').active).toBe(ids[1])
  expect(closeTab(layout, ids[0] ?? '').active).toBe(ids[2])
})

test('steps through tabs and panes with wrap-around', () => {
  const { layout, mint, ids } = withTabs(2)
  expect(stepTab(layout, 1).active).toBe(ids[0])
  expect(stepTab(EMPTY, 1)).toEqual(EMPTY)
  const split = splitView(layout, activeTab(layout)?.focus ?? '', { view: file, direction: 'column' }, mint)
  const stepped = stepPane(split, 1)
  expect(activeTab(stepped)?.focus).toBe(activeTab(layout)?.focus)
})

test('renames a tab, and restores its derived name', () => {
  const { layout, ids } = withTabs(1)
  const named = renameTab(layout, ids[0] ?? '', ' build ')
  expect(named.tabs[0]?.name).toBe('build')
  expect(renameTab(named, ids[0] ?? '', ' ').tabs[0]).not.toHaveProperty('name')
})

test('moves a tab', () => {
  const { layout, ids } = withTabs(3)
  const order = (to: number) => moveTab(layout, ids[0] ?? '', to).tabs.map(({ id }) => ids.indexOf(id))
  expect(order(1)).toEqual([1, 0, 2])
  expect(order(99)).toEqual([1, 2, 0])
  expect(order(-1)).toEqual([0, 1, 2])
})

test('moves the active tab by positions, within the ends', () => {
  const { layout, ids } = withTabs(3)
  const order = (by: number) =>
    shiftTab({ ...layout, active: ids[1] }, by).tabs.map(({ id }) => ids.indexOf(id))
  expect([order(-1), order(1), order(-5), order(5)]).toEqual([
    [1, 0, 2],
    [0, 2, 1],
    [1, 0, 2],
    [0, 2, 1],
  ])
  expect(shiftTab({ ...layout, active: undefined }, 1).tabs).toEqual(layout.tabs)
})

test('ignores unknown ids', () => {
  const { layout, ids } = withTabs(1)
  expect(closeView(layout, 'x')).toEqual(layout)
  expect(closeTab(layout, 'x')).toEqual(layout)
  expect(focusView(layout, 'x')).toEqual(layout)
  expect(activateTab(layout, 'x')).toEqual(layout)
  expect(changeView(layout, 'x', () => file)).toEqual(layout)
  expect(layout.active).toBe(ids[0])
})
