import { closeTab, closeView } from '../layout/layout.ts'
import { leavesOf } from '../layout/pane-tree.ts'
import type { Parts } from '../state/context.ts'

type Needs = Pick<Parts, 'workbench' | 'dirty'>

/** Closes a pane, after a question if something in it is not saved. */
export function closePane({ workbench, dirty }: Needs, viewId: string): void {
  void dirty.leave([viewId], () => workbench.changeLayout((layout) => closeView(layout, viewId)))
}

/** Closes a tab with all that is in it, after a question if something of that is not saved. */
export function closeWholeTab({ workbench, dirty }: Needs, tabId: string): void {
  const tab = workbench.layout.get().tabs.find(({ id }) => id === tabId)
  const views = tab === undefined ? [] : leavesOf(tab.panes)
  void dirty.leave(views, () => workbench.changeLayout((layout) => closeTab(layout, tabId)))
}
