import type { Conversation } from '../api/conversations.ts'
import type { Run } from '../api/runs.ts'
import { displayTitle } from '../files/display-name.ts'
import { focusView, openTab, type View } from '../layout/layout.ts'
import type { Workbench } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import type { AgentItem } from './agent-list.ts'

/** Characters of the task in the title of a tab. */
const MAX_TITLE_CHARS = 40

function titleOf(text: string): string {
  return displayTitle(text.replaceAll(/\s+/g, ' ')).slice(0, MAX_TITLE_CHARS)
}

/** Focuses the pane that shows it, or opens one. */
function openView(workbench: Workbench, isIt: (view: View) => boolean, view: View): void {
  workbench.changeLayout((layout) => {
    const open = Object.entries(layout.views).find(([, each]) => isIt(each))
    return open === undefined ? openTab(layout, view, workbench.mint) : focusView(layout, open[0])
  })
}

export function openRun(workbench: Workbench, { id, sandbox, task }: Run): void {
  openView(workbench, (view) => view.kind === 'run' && view.run === id, {
    kind: 'run',
    sandbox,
    run: id,
    title: titleOf(task),
  })
}

export function openConversation(
  workbench: Workbench,
  { id, sandbox, title }: Pick<Conversation, 'id' | 'sandbox' | 'title'>,
): void {
  openView(workbench, (view) => view.kind === 'conversation' && view.conversation === id, {
    kind: 'conversation',
    sandbox,
    conversation: id,
    title: title === '' ? agentTexts.conversation.untitled : titleOf(title),
  })
}

export function openItem(workbench: Workbench, item: AgentItem): void {
  if (item.kind === 'run') openRun(workbench, item.run)
  else openConversation(workbench, item.conversation)
}
