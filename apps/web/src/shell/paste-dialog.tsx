import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { Confirm } from './dialog.tsx'

/** Asks before several lines are pasted where they would run at once. */
export function PasteDialog(): ReactElement | null {
  const { terminals } = useParts()
  const question = useStore(terminals.question)
  if (question === undefined) return null
  const { paste, answer } = question
  return (
    <Confirm title={`Paste ${paste.lines} lines?`} yes="Paste" onAnswer={answer}>
      <p>What runs in this terminal may run each line as soon as it arrives.</p>
      <pre className="preview">{paste.preview}</pre>
    </Confirm>
  )
}
