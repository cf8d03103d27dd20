import { openTab, splitView, type View } from '../layout/layout.ts'
import { activeTab } from '../layout/layout.ts'
import type { Workbench } from '../state/workbench.ts'

/** What a sandbox is called that is made for who has none. */
const FIRST_SANDBOX = 'dev'

/** The sandbox that a new terminal is for: that of the pane with the keyboard, the chosen one, or a new one. */
export function sandboxForTerminal(workbench: Workbench): string {
  const layout = workbench.layout.get()
  const focused = layout.views[activeTab(layout)?.focus ?? '']
  return focused?.sandbox ?? workbench.current.get() ?? FIRST_SANDBOX
}

export function openTerminal(workbench: Workbench, sandbox = sandboxForTerminal(workbench)): void {
  workbench.changeLayout((layout) => openTab(layout, { kind: 'terminal', sandbox }, workbench.mint))
}

/** Opens a session that somebody started. */
export function joinSession(workbench: Workbench, sandbox: string, session: string): void {
  const view: View = { kind: 'terminal', sandbox, session }
  workbench.changeLayout((layout) => openTab(layout, view, workbench.mint))
}

/** Another shell beside or below the pane with the keyboard. */
export function splitTerminal(workbench: Workbench, direction: 'row' | 'column'): void {
  const view: View = { kind: 'terminal', sandbox: sandboxForTerminal(workbench) }
  workbench.changeLayout((layout) =>
    splitView(layout, activeTab(layout)?.focus ?? '', { view, direction }, workbench.mint),
  )
}
