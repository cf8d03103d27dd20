import { endSession } from '../api/sessions.ts'
import { closeTab, closeView } from '../layout/layout.ts'
import { leavesOf } from '../layout/pane-tree.ts'
import type { Parts } from '../state/context.ts'
import { isOwner } from '../state/rights.ts'
import { shellTexts } from '../texts/shell.ts'

type Needs = Pick<Parts, 'workbench' | 'dirty' | 'terminals'>

/** The user's own sessions in some panes that keep running after these close. */
function runningSessions({ workbench, terminals }: Needs, views: readonly string[]): readonly string[] {
  const { views: open } = workbench.layout.get()
  return views.flatMap((id) => {
    const state = terminals.find(id)?.state.get()
    const isThere = state?.status.kind === 'attached' || state?.status.kind === 'reconnecting'
    const isOwn = isOwner(workbench.sandboxes.get(), open[id]?.sandbox ?? '')
    return isThere && isOwn && state.session !== undefined ? [state.session] : []
  })
}

/** Says where to find a session that keeps running after its pane was closed. */
function notifyStillRunning({ workbench }: Needs, sessions: readonly string[]): void {
  if (sessions.length === 0) return
  workbench.notifyOnce(shellTexts.panes.stillRunning, {
    label: shellTexts.panes.endSession,
    run: () =>
      void Promise.all(
        sessions.map((one) => workbench.attempt(shellTexts.panes.cannotEnd, () => endSession(one))),
      ),
  })
}

function leave(needs: Needs, views: readonly string[], close: () => void): void {
  void needs.dirty.leave(views, () => {
    const sessions = runningSessions(needs, views)
    close()
    notifyStillRunning(needs, sessions)
  })
}

/** Closes a pane, after confirmation if it has unsaved text. */
export function closePane(needs: Needs, viewId: string): void {
  leave(needs, [viewId], () => needs.workbench.changeLayout((layout) => closeView(layout, viewId)))
}

/** Closes a tab, after confirmation if it has unsaved text. */
export function closeWholeTab(needs: Needs, tabId: string): void {
  const tab = needs.workbench.layout.get().tabs.find(({ id }) => id === tabId)
  const views = tab === undefined ? [] : leavesOf(tab.panes)
  leave(needs, views, () => needs.workbench.changeLayout((layout) => closeTab(layout, tabId)))
}
