import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { Confirm } from './dialog.tsx'
import { shellTexts } from '../texts/shell.ts'

/** Asks before several lines are pasted. */
export function PasteDialog(): ReactElement | null {
  const { terminals } = useParts()
  const question = useStore(terminals.pasting)
  if (question === undefined) return null
  const { about: paste, answer } = question
  const { leftOut, notShown } = paste
  return (
    <Confirm title={shellTexts.paste.title(paste.lines)} yes={shellTexts.paste.paste} onAnswer={answer}>
      <p>{shellTexts.paste.mayRun}</p>
      {leftOut > 0 && <p>{shellTexts.paste.removed(leftOut)}</p>}
      <pre className="preview">{paste.preview}</pre>
      {notShown > 0 && <p>{shellTexts.paste.notShown(notShown)}</p>}
    </Confirm>
  )
}
