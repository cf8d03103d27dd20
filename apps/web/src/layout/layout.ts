import {
  depthOf,
  leaf,
  leavesOf,
  MAX_DEPTH,
  nextLeaf,
  type PaneTree,
  removeLeaf,
  resizeSplit,
  splitLeaf,
} from './pane-tree.ts'

/** What a pane shows. */
export type View =
  | {
      readonly kind: 'terminal'
      /** Id or name. */
      readonly sandbox: string
      /** The attached session; without one a shell is started. */
      readonly session?: string
      /** The user had control when the page was last open. */
      readonly hadControl?: boolean
      /** Working directory of a new shell, relative to the workspace. */
      readonly cwd?: string
      /** Last known size, kept while the terminal is not visible. */
      readonly size?: { readonly cols: number; readonly rows: number }
    }
  /** The sandbox's tmux: the panes of its active window. */
  | { readonly kind: 'tmux'; readonly sandbox: string }
  /** A run of a coding agent. The title is the beginning of its task. */
  | { readonly kind: 'run'; readonly sandbox: string; readonly run: string; readonly title: string }
  /** A conversation with a coding agent. The title is the beginning of its first message. */
  | {
      readonly kind: 'conversation'
      readonly sandbox: string
      readonly conversation: string
      readonly title: string
    }
  | {
      readonly kind: 'file'
      readonly sandbox: string
      readonly path: string
      /** Cursor position, counted from 1. */
      readonly line?: number
      readonly column?: number
    }
  | {
      readonly kind: 'diff'
      readonly sandbox: string
      readonly path: string
      /** What is compared: working tree and index, index and HEAD, or a commit and its parent. */
      readonly of: 'unstaged' | 'staged' | { readonly commit: string }
      /** Folder of the repository; default: the workspace. */
      readonly repo?: string
      /** Former path of a renamed or copied file. */
      readonly from?: string
    }

export interface Tab {
  readonly id: string
  readonly panes: PaneTree
  /** The pane that has, or last had, the focus. */
  readonly focus: string
  /** Given by the user; otherwise derived from the focused view. */
  readonly name?: string
}

/** Open tabs and panes as plain data, stored across reloads. */
export interface Layout {
  readonly tabs: readonly Tab[]
  readonly active: string | undefined
  readonly views: Readonly<Record<string, View>>
}

/** Maximum length of a tab name. */
export const MAX_TAB_NAME = 200

export const EMPTY: Layout = { tabs: [], active: undefined, views: {} }

/** Generates ids; a parameter, to keep these functions pure. */
export type MintId = () => string

export function activeTab({ tabs, active }: Layout): Tab | undefined {
  return tabs.find(({ id }) => id === active)
}

/** The view in the focused pane. */
export function focusedView(layout: Layout): View | undefined {
  return layout.views[activeTab(layout)?.focus ?? '']
}

function changeTab(layout: Layout, id: string, change: (tab: Tab) => Tab): Layout {
  return { ...layout, tabs: layout.tabs.map((tab) => (tab.id === id ? change(tab) : tab)) }
}

function tabOf({ tabs }: Layout, view: string): Tab | undefined {
  return tabs.find(({ panes }) => leavesOf(panes).includes(view))
}

/** Opens a view in a new tab after the active one. */
export function openTab(layout: Layout, view: View, mint: MintId): Layout {
  const viewId = mint()
  const tab: Tab = { id: mint(), panes: leaf(viewId), focus: viewId }
  const at = layout.tabs.findIndex(({ id }) => id === layout.active) + 1
  return {
    tabs: [...layout.tabs.slice(0, at), tab, ...layout.tabs.slice(at)],
    active: tab.id,
    views: { ...layout.views, [viewId]: view },
  }
}

function isSame(left: View, right: View): boolean {
  const anywhere = { line: 0, column: 0 }
  return (
    left.kind !== 'terminal' &&
    JSON.stringify({ ...left, ...anywhere }) === JSON.stringify({ ...right, ...anywhere })
  )
}

/** Focuses an open file or diff, or opens it. */
export function reveal(layout: Layout, view: View, mint: MintId): Layout {
  const known = Object.entries(layout.views).find(([, open]) => isSame(open, view))?.[0]
  if (known === undefined) return openTab(layout, view, mint)
  return focusView({ ...layout, views: { ...layout.views, [known]: view } }, known)
}

/** True when the maximum split depth is reached. */
export function isDeepest(layout: Layout, view: string): boolean {
  const tab = tabOf(layout, view)
  return tab !== undefined && (depthOf(tab.panes, view) ?? 0) >= MAX_DEPTH
}

/** Splits a pane and opens a view in the second half, unless the maximum depth is reached. */
export function splitView(
  layout: Layout,
  at: string,
  { view, direction }: { readonly view: View; readonly direction: 'row' | 'column' },
  mint: MintId,
): Layout {
  const tab = tabOf(layout, at)
  if (tab === undefined) return openTab(layout, view, mint)
  if (isDeepest(layout, at)) return layout
  const id = mint()
  const split = { id, direction, splitId: mint() }
  return changeTab({ ...layout, views: { ...layout.views, [id]: view } }, tab.id, (old) => ({
    ...old,
    panes: splitLeaf(old.panes, at, split),
    focus: id,
  }))
}

/** Closes a view, and its tab when it was the last one. */
export function closeView(layout: Layout, view: string): Layout {
  const tab = tabOf(layout, view)
  if (tab === undefined) return layout
  const panes = removeLeaf(tab.panes, view)
  if (panes === undefined) return closeTab(layout, tab.id)
  const { [view]: _, ...views } = layout.views
  const focus = tab.focus === view ? (leavesOf(panes)[0] ?? '') : tab.focus
  return changeTab({ ...layout, views }, tab.id, (old) => ({ ...old, panes, focus }))
}

export function closeTab(layout: Layout, id: string): Layout {
  const at = layout.tabs.findIndex((tab) => tab.id === id)
  const tab = layout.tabs[at]
  if (tab === undefined) return layout
  const gone = new Set(leavesOf(tab.panes))
  const tabs = layout.tabs.filter((other) => other.id !== id)
  const neighbor = tabs[Math.min(at, tabs.length - 1)]?.id
  return {
    tabs,
    active: layout.active === id ? neighbor : layout.active,
    views: Object.fromEntries(Object.entries(layout.views).filter(([view]) => !gone.has(view))),
  }
}

export function focusView(layout: Layout, view: string): Layout {
  const tab = tabOf(layout, view)
  if (tab === undefined) return layout
  return changeTab({ ...layout, active: tab.id }, tab.id, (old) => ({ ...old, focus: view }))
}

/** Focuses the next pane of the active tab. */
export function stepPane(layout: Layout, step: 1 | -1): Layout {
  const tab = activeTab(layout)
  return tab === undefined ? layout : focusView(layout, nextLeaf(tab.panes, tab.focus, step))
}

/** Activates the next tab, wrapping around. */
export function stepTab(layout: Layout, step: 1 | -1): Layout {
  const at = layout.tabs.findIndex(({ id }) => id === layout.active)
  const next = layout.tabs[(at + step + layout.tabs.length) % layout.tabs.length]
  return next === undefined ? layout : { ...layout, active: next.id }
}

export function activateTab(layout: Layout, id: string): Layout {
  return layout.tabs.some((tab) => tab.id === id) ? { ...layout, active: id } : layout
}

/** Trims a tab name to the limit without splitting a surrogate pair. */
export function tabNameOf(name: string): string {
  return name
    .trim()
    .slice(0, MAX_TAB_NAME)
    .replace(/[\ud800-\udbff]$/, '')
    .trimEnd()
}

/** An empty name restores the derived one. */
export function renameTab(layout: Layout, id: string, name: string): Layout {
  const given = tabNameOf(name)
  return changeTab(layout, id, ({ id: tab, panes, focus }) => ({
    id: tab,
    panes,
    focus,
    ...(given === '' ? {} : { name: given }),
  }))
}

/** Moves a tab to another index. */
export function moveTab(layout: Layout, id: string, to: number): Layout {
  const tab = layout.tabs.find((other) => other.id === id)
  if (tab === undefined) return layout
  const rest = layout.tabs.filter((other) => other.id !== id)
  const at = Math.min(rest.length, Math.max(0, to))
  return { ...layout, tabs: [...rest.slice(0, at), tab, ...rest.slice(at)] }
}

/** Moves the active tab by a number of positions. */
export function shiftTab(layout: Layout, by: number): Layout {
  const { tabs, active } = layout
  const at = tabs.findIndex(({ id }) => id === active)
  return active === undefined ? layout : moveTab(layout, active, at + by)
}

export function resizePanes(layout: Layout, tab: string, split: string, share: number): Layout {
  return changeTab(layout, tab, (old) => ({ ...old, panes: resizeSplit(old.panes, split, share) }))
}

/** Updates a view, for example with the session of a terminal. */
export function changeView(layout: Layout, view: string, change: (view: View) => View): Layout {
  const old = layout.views[view]
  return old === undefined ? layout : { ...layout, views: { ...layout.views, [view]: change(old) } }
}
