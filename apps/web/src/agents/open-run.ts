import type { Run } from '../api/runs.ts'
import { displayTitle } from '../files/display-name.ts'
import { focusView, openTab } from '../layout/layout.ts'
import type { Workbench } from '../state/workbench.ts'

/** Characters of the task in the title of a tab. */
const MAX_TITLE_CHARS = 40

/** Shows a run, or focuses the pane that does. */
export function openRun(workbench: Workbench, { id, sandbox, task }: Run): void {
  const title = displayTitle(task.replaceAll(/\s+/g, ' ')).slice(0, MAX_TITLE_CHARS)
  workbench.changeLayout((layout) => {
    const open = Object.entries(layout.views).find(([, view]) => view.kind === 'run' && view.run === id)
    if (open !== undefined) return focusView(layout, open[0])
    return openTab(layout, { kind: 'run', sandbox, run: id, title }, workbench.mint)
  })
}
