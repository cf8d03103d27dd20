import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { Confirm } from './dialog.tsx'

/** Asks before a link opens that may not lead where it says. */
export function LinkDialog(): ReactElement | null {
  const { terminals } = useParts()
  const question = useStore(terminals.leaving)
  if (question === undefined) return null
  const { text, address } = question.about
  return (
    <Confirm title="Open this link?" yes="Open" onAnswer={question.answer}>
      <p>It says:</p>
      <pre className="preview">{text}</pre>
      <p>It leads to:</p>
      <pre className="preview">{address}</pre>
    </Confirm>
  )
}
