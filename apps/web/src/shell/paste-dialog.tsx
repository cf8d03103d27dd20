import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { Confirm } from './dialog.tsx'

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** Asks before several lines are pasted. */
export function PasteDialog(): ReactElement | null {
  const { terminals } = useParts()
  const question = useStore(terminals.pasting)
  if (question === undefined) return null
  const { about: paste, answer } = question
  const { leftOut, notShown } = paste
  return (
    <Confirm title={`Paste ${paste.lines} lines?`} yes="Paste" onAnswer={answer}>
      <p>What runs in this terminal may run each line as soon as it arrives.</p>
      {leftOut > 0 && <p>{countOf(leftOut, 'control character')} in it will not be sent.</p>}
      <pre className="preview">{paste.preview}</pre>
      {notShown > 0 && <p>{countOf(notShown, 'more character')} not shown here.</p>}
    </Confirm>
  )
}
