import { type ReactElement, useState } from 'react'
import { useParts } from '../state/context.ts'
import { agentTexts } from '../texts/agents.ts'

const { run: texts } = agentTexts

/** Asks the browser whether it may notify; nothing once that is decided. */
export function NotifyButton(): ReactElement | null {
  const { workbench } = useParts()
  const [isDecided, setDecided] = useState(
    () => !('Notification' in globalThis) || Notification.permission !== 'default',
  )
  if (isDecided) return null
  const ask = async (): Promise<void> => {
    const permission = await Notification.requestPermission()
    setDecided(permission !== 'default')
    if (permission === 'denied') workbench.notify('info', texts.notifyDenied)
  }
  return (
    <button type="button" className="plain-button" onClick={() => void ask()}>
      {texts.notify}
    </button>
  )
}
