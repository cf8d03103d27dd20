import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { IconButton } from './icon-button.tsx'

/** What there is to tell for a moment, read out as it comes. */
export function Notices(): ReactElement {
  const { workbench } = useParts()
  const notices = useStore(workbench.notices)
  return (
    <div className="notices" role="status" aria-live="polite">
      {notices.map(({ id, kind, text }) => (
        <p key={id} className={`notice ${kind}`}>
          <span>{text}</span>
          <IconButton icon="close" label="Dismiss" onClick={() => workbench.dismiss(id)} />
        </p>
      ))}
    </div>
  )
}
