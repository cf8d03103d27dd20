import { type RefObject, useEffect, useLayoutEffect, useRef } from 'react'
import { hasLostFocus } from '../shell/focus.ts'
import type { TreePanel } from './file-tree.ts'
import type { TreeLine } from './tree-lines.ts'
import { nextSelection } from './tree-navigation.ts'
import type { VisibleRows } from './visible-rows.ts'

interface TreeFocus {
  /** Focuses a line if it is an entry. */
  readonly goTo: (at: number | undefined) => void
  readonly onFocus: () => void
  readonly onBlur: () => void
}

/** Moves the focus between the rows of a tree, also when the focused entry is removed or renamed. */
export function useTreeFocus(
  element: RefObject<HTMLElement | null>,
  {
    treePanel,
    lines,
    selected,
    rows,
    onSelect,
  }: {
    readonly treePanel: TreePanel
    readonly lines: readonly TreeLine[]
    readonly selected: string | undefined
    readonly rows: VisibleRows
    readonly onSelect: (path: string, isFolder: boolean) => void
  },
): TreeFocus {
  const before = useRef(lines)
  /** A row has the focus, or had it when it was removed. */
  const isInside = useRef(false)
  const goTo = (at: number | undefined): void => {
    const line = at === undefined ? undefined : lines[at]
    if (at === undefined || line?.kind !== 'item') return
    treePanel.pendingFocus = line.path
    rows.see(at)
    onSelect(line.path, line.isFolder)
  }
  const lineOf = (path: string | undefined): number =>
    path === undefined ? -1 : lines.findIndex((line) => line.kind === 'item' && line.path === path)
  useLayoutEffect(() => {
    const tree = element.current?.querySelector<HTMLElement>('[role=tree]')
    const first = lines.findIndex(({ kind }) => kind === 'item')
    const [old, hadFocus] = [before.current, isInside.current]
    before.current = lines
    // React reports no focus event when a closing dialog restores the focus.
    if (element.current?.contains(document.activeElement) === true) isInside.current = true
    // The tree itself has the focus while it is empty.
    if (old.length === 0 && document.activeElement === tree) return goTo(first)
    if (old === lines || !hadFocus || !hasLostFocus() || lineOf(selected) !== -1) return
    treePanel.pendingFocus ??= nextSelection(old, lines, selected ?? '')
    if (first === -1) tree?.focus()
  })
  useLayoutEffect(() => {
    const at = lineOf(treePanel.pendingFocus)
    if (at === -1) return
    if (treePanel.pendingFocus !== selected) return goTo(at)
    const row = element.current?.querySelector<HTMLElement>(`[data-row="${at}"]`)
    row?.focus({ preventScroll: true })
    // A modal dialog still holds the focus; it closes soon.
    if (row !== undefined && document.activeElement === row) treePanel.pendingFocus = undefined
  })
  useEffect(() => () => void (treePanel.pendingFocus = undefined), [treePanel])
  return {
    goTo,
    onFocus: () => void (isInside.current = true),
    onBlur: () => void (isInside.current = false),
  }
}
