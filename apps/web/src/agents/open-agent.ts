import { type Conversation, isConversationId } from '../api/conversations.ts'
import type { Run } from '../api/runs.ts'
import { listSessions } from '../api/sessions.ts'
import { displayTitle } from '../files/display-name.ts'
import { focusView, openTab, type View } from '../layout/layout.ts'
import { joinSession, openTerminal } from '../shell/open-terminal.ts'
import type { Parts } from '../state/context.ts'
import type { Workbench } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import type { AgentItem } from './agent-list.ts'

/** Characters of the task in the title of a tab. */
const MAX_TITLE_CHARS = 40

/** The beginning of a task or message, on one line. */
export function titleOf(text: string): string {
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

/** Shows the newest terminal that an agent has opened, or a new one in its sandbox if it has none. */
export async function openAgentTerminal(
  workbench: Workbench,
  sandbox: string,
  isOf: (agentRun: string) => boolean,
): Promise<void> {
  await workbench.attempt(agentTexts.run.cannotOpenTerminal, async () => {
    const newest = (await listSessions())
      .filter(({ state, agentRun }) => state === 'running' && agentRun !== undefined && isOf(agentRun))
      .toSorted((one, other) => (other.createdMs ?? 0) - (one.createdMs ?? 0))[0]
    if (newest === undefined) openTerminal(workbench, sandbox)
    else joinSession(workbench, newest.sandbox, newest.id)
  })
}

/** Opens the conversation that a share link was for; false when it was for something else. */
export function openSharedConversation(
  workbench: Workbench,
  { sandbox, session }: { readonly sandbox: string; readonly session: string | null },
): boolean {
  if (session === null || !isConversationId(session)) return false
  openConversation(workbench, { id: session, sandbox, title: '' })
  return true
}

/** The argument with which an agent's own interface continues a conversation. */
const RESUME: Readonly<Record<string, string>> = { claude: '--resume', opencode: '--session' }

/** Opens the agent's own interface in a terminal: in a conversation, or a new one. */
export function openTui(
  { workbench, terminals }: Pick<Parts, 'workbench' | 'terminals'>,
  agent: string,
  conversation?: { readonly sandbox: string; readonly agentSessionId: string },
): void {
  const resume = RESUME[agent]
  const args = conversation === undefined || resume === undefined ? [] : [resume, conversation.agentSessionId]
  terminals.startFirst({ cmd: agent, args })
  openTerminal(workbench, conversation?.sandbox)
}

/** True for agents that have an interface of their own in a terminal. */
export function hasTui(agent: string): boolean {
  return Object.hasOwn(RESUME, agent)
}

export function openItem(workbench: Workbench, item: AgentItem): void {
  if (item.kind === 'run') openRun(workbench, item.run)
  else openConversation(workbench, item.conversation)
}
