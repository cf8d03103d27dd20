import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { Confirm } from './dialog.tsx'
import { shellTexts } from '../texts/shell.ts'

/** Asks before a link opens that may not lead where it says. */
export function LinkDialog(): ReactElement | null {
  const { terminals } = useParts()
  const question = useStore(terminals.leaving)
  if (question === undefined) return null
  const { text, address } = question.about
  return (
    <Confirm title={shellTexts.link.title} yes={shellTexts.link.open} onAnswer={question.answer}>
      <p>{shellTexts.link.text}</p>
      <pre className="preview">{text}</pre>
      <p>{shellTexts.link.address}</p>
      <pre className="preview">{address}</pre>
    </Confirm>
  )
}
