import { agentTexts } from '../texts/agents.ts'
import { type AgentItem, idOf, textOf } from './agent-list.ts'

/** Characters of a task or message in a notification. */
const MAX_CHARS = 200

/** Notifies outside the page that an agent waits, if the page is hidden and the user has allowed it. */
export function notifyOutside(item: AgentItem, open: () => void): void {
  if (!document.hidden || !('Notification' in globalThis) || Notification.permission !== 'granted') return
  try {
    const shown = new Notification(agentTexts.waits, {
      body: textOf(item).slice(0, MAX_CHARS),
      tag: idOf(item),
    })
    shown.addEventListener('click', () => {
      window.focus()
      open()
      shown.close()
    })
  } catch {
    // Some phones allow notifications to service workers only; the title still says it.
  }
}
