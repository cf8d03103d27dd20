import { activeTab } from '../layout/layout.ts'
import type { Workbench } from '../state/workbench.ts'

const NARROW = '(width <= 700px)'

/** On a narrow screen a panel lies over the panes: it goes when something is opened from it. */
export function makeRoom(workbench: Workbench): void {
  if (matchMedia(NARROW).matches) workbench.hidePanel()
  let last = activeTab(workbench.layout.get())?.focus
  workbench.layout.subscribe((layout) => {
    const focus = activeTab(layout)?.focus
    if (focus !== last && matchMedia(NARROW).matches) workbench.hidePanel()
    last = focus
  })
}
